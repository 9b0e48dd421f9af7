# SPDX-License-Identifier: Apache-2.0
"""ClockBound beside the time service: built of one version, and left out where it cannot be."""

from __future__ import annotations

import struct
import tomllib
from pathlib import Path

import pytest

from bench.clocks import bench_timeservice, clockbound, clockbound_truth
from hw.errors import CapabilityError
from tests.targets.timeservice.truth_lab import TruthReader, begin_truth

CAP_SYS_TIME = 25


def cargo(folder: Path, script: str) -> str:
    """Return a search path on which `cargo` is a script."""
    program = folder / "cargo"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


@pytest.fixture(autouse=True)
def _x86(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")


def test_its_version_is_pinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", cargo(tmp_path, 'echo "$@" > arguments'))
    program = clockbound.build_clockbound(tmp_path / "build")
    manifest = tomllib.loads((tmp_path / "build" / "Cargo.toml").read_text())
    assert manifest["dependencies"]["clock-bound"].startswith("=")
    assert all(Path(binary["path"]).exists() for binary in manifest["bin"])
    assert program.parent.parent.parent == tmp_path / "build"
    assert "--release" in (tmp_path / "build" / "arguments").read_text()


@pytest.mark.parametrize(
    ("script", "said"),
    [(None, "cargo is missing"), ("echo no such crate >&2; exit 101", "cannot be built: no such crate")],
)
def test_without_its_crate_it_is_left_out_and_said(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    script: str | None,
    said: str,
) -> None:
    monkeypatch.setenv("PATH", cargo(tmp_path, script) if script else str(tmp_path))
    monkeypatch.setattr(bench_timeservice, "BUILD", tmp_path)
    with pytest.raises(CapabilityError, match=said):
        clockbound.build_clockbound(tmp_path / "build")
    assert not bench_timeservice.clockbound_runs(tmp_path, 1)
    assert "clockbound is left out" in capsys.readouterr().err


def test_its_daemon_is_of_the_same_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", cargo(tmp_path, 'echo "$@" > arguments'))
    assert clockbound.build_daemon(tmp_path / "build") == tmp_path / "build" / "bin" / "clockbound"
    arguments = (tmp_path / "build" / "arguments").read_text().split()
    assert arguments[0] == "install"
    assert arguments[arguments.index("--version") + 1] == f"={clockbound.VERSION}"


def test_without_its_daemon_truth_is_left_out_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(bench_timeservice, "BUILD", tmp_path)
    assert not bench_timeservice.clockbound_truth(tmp_path, 0, 0)
    assert "clockbound's daemon is left out: cargo is missing" in capsys.readouterr().err


def test_a_daemon_that_ends_at_once_is_a_missing_capability(tmp_path: Path) -> None:
    """Its machine says that it is one of its maker's cloud, it may not steer, and is told that it did."""
    daemon = tmp_path / "daemon"
    daemon.write_text(
        "#!/bin/sh\ncat /sys/devices/virtual/dmi/id/sys_vendor\n"
        "grep CapBnd /proc/self/status\necho $LD_PRELOAD\nexit 1\n"
    )
    daemon.chmod(0o755)
    with pytest.raises(CapabilityError, match="Amazon EC2") as ended:
        clockbound.ClockBoundDaemon(daemon, tmp_path / "lab", ("unshare", "--mount"))
    allowed = int(str(ended.value).split("CapBnd:")[1].split()[0], 16)
    assert not allowed >> CAP_SYS_TIME & 1
    assert "no_steering.so" in str(ended.value)


def test_readings_of_another_program_are_held_against_the_truth(tmp_path: Path) -> None:
    """Of three, one has the truth in its interval, one has not, and one is no time."""
    truth = begin_truth(1, 0.0)
    _, _, hz, ticks, utc_ns = truth.split(":")
    at, now_ns = int(ticks) + int(hz), int(utc_ns) + 10**9
    readings = [(at, at, now_ns - 10**6, now_ns + 10**6)] * 2000
    readings += [(at, at, now_ns + 10**6, now_ns + 2 * 10**6)] * 1500 + [(at, at, 0, 0)] * 500
    told = tmp_path / "told"
    told.write_bytes(b"".join(struct.pack("=QQqq", *reading) for reading in readings))
    with told.open("rb") as file:
        answer = TruthReader(file, truth, len(readings)).answer()
    assert (answer["reads"], answer["interval_missed"], answer["no_time"]) == (4000, 1500, 500)
    assert answer["bound_max_ns"] >= 10**6
    figures = clockbound_truth.figures_of("their", answer, 0.5)
    assert figures["their_bound_missed"] == 1500
    assert figures["their_bound_width_median_us"] == pytest.approx(2000, rel=0.05)


def test_another_machine_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    with pytest.raises(CapabilityError, match="x86-64 alone"):
        clockbound.build_clockbound(tmp_path)
