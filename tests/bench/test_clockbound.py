# SPDX-License-Identifier: Apache-2.0
"""ClockBound beside the time service: built of one version, and left out where it cannot be."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from hw.errors import CapabilityError
from tests.bench import bench_timeservice, clockbound


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
    assert Path(manifest["bin"][0]["path"]).exists()
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


def test_another_machine_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    with pytest.raises(CapabilityError, match="x86-64 alone"):
        clockbound.build_clockbound(tmp_path)
