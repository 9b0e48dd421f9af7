# SPDX-License-Identifier: Apache-2.0
"""Congestion control and segments of the connection that carries a camera's pictures: as ss(8) sees them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.patience import HANG_S
from tests.traffic_gen.loop.cameras import PATIENT, Truth, connect, read_stream
from tests.traffic_gen.two_ends import end, ended, free

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may choose what is not allowed to all")
@pytest.mark.parametrize("name", ["reno", "cubic"])
def test_it_is_what_was_chosen(bw_loop: Path, tmp_path: Path, name: str) -> None:
    if name not in AVAILABLE.read_text().split():
        pytest.skip(f"this kernel has no {name}")
    truth = tmp_path / "truth"
    seen = _seen(bw_loop, ["--truth", truth, "--congestion", name])
    assert f"\t {name} " in seen, seen
    assert Truth(truth).head["congestion"] == name


def test_segments_are_no_longer_than_was_chosen(bw_loop: Path) -> None:
    """Frames of 1500 bytes have 1448 of TCP's payload, beside its time stamps."""
    seen = _seen(bw_loop, ["--segment-bytes", "1460"])
    assert " mss:1448 " in seen, seen


def test_segments_that_the_system_does_not_take_are_refused(bw_loop: Path) -> None:
    done = _refused(bw_loop, "--segment-bytes", "87")
    assert done.returncode == 2
    assert "--segment-bytes" in done.stderr
    assert "88..32767" in done.stderr


def _refused(bw_loop: Path, *option: str) -> subprocess.CompletedProcess[str]:
    """Return how a camera ended that does not take an option."""
    argv = [bw_loop, "camera", "--serve", free(), *option]
    return subprocess.run(argv, capture_output=True, text=True, timeout=HANG_S, check=False)


def _seen(bw_loop: Path, options: list[str | Path]) -> str:
    """Return what ss says of the connection that carries three pictures."""
    with (
        end(
            bw_loop, "camera", "--serve", free(), *PATIENT, "--pictures", "3", "--wait-for-client", *options
        ) as (
            process,
            ready,
        ),
        connect(ready["address"]) as pictures,
    ):
        assert pictures.recv(1) == b"B"  # it was accepted
        port = ready["address"].rpartition(":")[2]
        seen = subprocess.run(
            ["ss", "-Htin", "state", "established", f"( sport = :{port} )"],
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=True,
        ).stdout
        read_stream(pictures)
        assert ended(process)[0] == 0
    return seen


def test_without_a_choice_it_is_the_systems(bw_loop: Path, tmp_path: Path) -> None:
    words = ["--serve", free(), "--pictures", "2", "--truth", tmp_path / "truth", *PATIENT]
    with end(bw_loop, "camera", *words) as (process, _):
        assert ended(process)[0] == 0
    system = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    assert Truth(tmp_path / "truth").head["congestion"] == system


def test_what_the_kernel_has_not_is_refused(bw_loop: Path) -> None:
    done = _refused(bw_loop, "--congestion", "no-such")
    assert done.returncode == 3
    assert "bw-loop camera: the kernel has no congestion control no-such" in done.stderr
    assert done.stdout == ""
