# SPDX-License-Identifier: Apache-2.0
"""bw-drop: frames are lost by the share and the seed that were asked, counted, and none once it has ended."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bench.lab.namespaces import Namespaces
from hw.tools import local_tool
from tests.patience import HANG_S

pytestmark = pytest.mark.simulated

PINGS = 2000
NEAR, FAR = "10.99.0.1", "10.99.0.2"
LOSS_PPM = 50_000


class Link(Namespaces):
    """Two namespaces with a link between them, a0 and b0."""

    def _join(self) -> None:
        self.link("a", "a0", "b", "b0")
        self.set_up("a", "a0", f"{NEAR}/24")
        self.set_up("b", "b0", f"{FAR}/24")


@pytest.fixture(scope="module")
def lab() -> Generator[Namespaces]:
    """Return the link."""
    with Link("ab") as made:
        yield made


def started(lab: Namespaces, *options: str) -> subprocess.Popen[str]:
    argv = ["ip", "netns", "exec", lab.names["b"], str(local_tool("bw-drop")), *options]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@contextmanager
def dropping(lab: Namespaces, *options: str) -> Generator[dict[str, Any]]:
    """Lose frames that come to b; what bw-drop has counted stands in what is given."""
    process = started(lab, "b0", *options)
    said: dict[str, Any] = {}
    try:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["type"] == "ready"
        yield said
    finally:
        process.send_signal(signal.SIGTERM)
        said |= json.loads(process.communicate(timeout=HANG_S)[0])
        assert process.returncode == 0


def pinged(lab: Namespaces, count: int = PINGS) -> list[int]:
    """Return the numbers of the echoes that came back, as iputils' ping says."""
    argv = [
        "ip",
        "netns",
        "exec",
        lab.names["a"],
        "ping",
        "-n",
        "-c",
        str(count),
        "-i",
        "0.002",
        "-s",
        "1200",
    ]
    done = subprocess.run(
        [*argv, "-W", "1", FAR], capture_output=True, text=True, check=False, timeout=HANG_S
    )
    return [int(number) for number in re.findall(r"icmp_seq=(\d+) ttl", done.stdout)]


def test_the_share_that_was_asked_is_lost_and_counted(lab: Namespaces) -> None:
    lost: list[set[int]] = []
    for seed in ("7", "7", "8"):
        # Frames of ARP and of IPv6's neighbours are smaller.
        with dropping(lab, "--loss-ppm", str(LOSS_PPM), "--seed", seed, "--least-bytes", "1200") as said:
            came = pinged(lab)
        counts = said["interfaces"]["b0"]
        assert (counts["seen"], counts["dropped"]) == (PINGS, PINGS - len(came))
        assert 0.6 < counts["dropped"] / (PINGS * LOSS_PPM / 1e6) < 1.5
        lost.append(set(range(1, PINGS + 1)) - set(came))
    assert lost[0] == lost[1] != lost[2]


def test_each_so_manieth(lab: Namespaces) -> None:
    with dropping(lab, "--every", "10", "--least-bytes", "1200") as said:
        came = pinged(lab, 100)
    assert sorted(set(range(1, 101)) - set(came)) == list(range(10, 101, 10))
    assert said["interfaces"]["b0"]["dropped"] == 10


def test_the_line_is_sound_when_it_has_ended_or_was_killed(lab: Namespaces) -> None:
    process = started(lab, "b0", "--loss-ppm", "1000000")
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["type"] == "ready"
    assert not pinged(lab, 20)
    process.kill()
    process.communicate(timeout=HANG_S)
    with dropping(lab, "--loss-ppm", "0"):
        assert len(pinged(lab, 100)) == 100
    assert len(pinged(lab, 100)) == 100


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["no-such"], "no-such: no such interface here"),
        (["b0", "--loss-ppm", "1000001"], "--loss-ppm"),
        ([], "usage: bw-drop INTERFACE"),
        (["b0", "--seed", "0"], "--seed"),
    ],
)
def test_bad_input(lab: Namespaces, options: list[str], message: str) -> None:
    process = started(lab, *options)
    output, errors = process.communicate(timeout=HANG_S)
    assert (process.returncode, output) == (2, "")
    assert message in errors


def test_it_says_what_it_does(repository: Path) -> None:
    assert "bw-drop" in (repository / "docs" / "native-tools.md").read_text()
