# SPDX-License-Identifier: Apache-2.0
"""A bench that closes takes back its changes of this machine, whatever its nodes do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hw import session
from hw.bench import load_bench
from hw.errors import BenchError
from hw.journal import Journal


@pytest.mark.parametrize("is_broken", [False, True])
def test_nodes_that_cannot_be_closed_keep_no_change_from_being_undone(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_broken: bool
) -> None:
    monkeypatch.setattr(session, "RUN_FOLDER", tmp_path / "run")
    undone: list[str] = []

    def undo(change: Mapping[str, Any]) -> None:
        undone.append(change["name"])

    def cleanup() -> None:
        if is_broken:
            raise BenchError("a serial line is gone")

    def environment(*_: object) -> SimpleNamespace:
        return SimpleNamespace(targets={}, cleanup=cleanup)

    monkeypatch.setattr(session, "open_labgrid", environment)
    spec = load_bench(repository / "hw" / "benches" / "example-hardware.yaml")
    assert spec.virtual is None, "nothing of this machine is to be changed"
    bench = session.Bench(spec, Journal(spec.name, {"namespace": undo}, tmp_path / "journal"))
    bench.journal.record("namespace", name="made-by-this-test")
    assert bench.folder.exists()
    if is_broken:
        with pytest.raises(BenchError, match="a serial line is gone"):
            bench.close()
    else:
        bench.close()
    assert undone == ["made-by-this-test"]
    assert bench.journal.pending() == []
    assert not bench.folder.exists()
