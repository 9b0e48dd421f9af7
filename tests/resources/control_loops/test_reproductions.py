# SPDX-License-Identifier: Apache-2.0
"""The paper's findings as experiments: each file can be read at each of its points, for its bench."""

from __future__ import annotations

from pathlib import Path

import pytest

from resources.experiment.__main__ import main

HERE = Path("resources/control_loops/reproductions")
NAMES = ("grid_with_drift", "network_load", "probe_rtt", "retransmission_timer", "slow_start")


def test_all_of_them_are_listed(repository: Path) -> None:
    assert sorted(path.stem for path in (repository / HERE).glob("*.toml")) == sorted(NAMES)
    said = (repository / "docs" / "patterns.md").read_text()
    assert all(f"`{name}`" in said for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_it_can_be_made(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.chdir(repository)
    assert main(["plan", str(HERE / f"{name}.toml")]) == 0
    assert "after: sh -c" in capsys.readouterr().out
