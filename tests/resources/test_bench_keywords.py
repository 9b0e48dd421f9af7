# SPDX-License-Identifier: Apache-2.0
"""A bench is closed whatever fails on the way; a consumer is prepared and given back, and not under test."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from robot.api import Error, SkipExecution

from hw.bench import TargetSpec, load_bench
from hw.provisioning import Provisioned
from reports.current import set_current_run
from reports.run_folder import RunFolder
from resources.keywords import bench as keywords
from resources.keywords.bench import BenchLibrary

SPEC = load_bench(Path(__file__).resolve().parents[2] / "hw" / "benches" / "virtual.yaml")


def test_a_full_disk_does_not_keep_the_bench_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """The consoles cannot be kept: that is said, and the bench is closed all the same."""

    def evidence_folder(*names: str) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device", "/".join(names))

    closed: list[str] = []
    stack = ExitStack()
    stack.callback(closed.append, "bench")
    library: Any = BenchLibrary()
    library._stack = stack
    library._bench = SimpleNamespace(
        spec=SimpleNamespace(labgrid_targets={"board": {}}),
        console="Booting Linux {}".format,
        instruments=dict,
    )
    run = SimpleNamespace(evidence_folder=evidence_folder, update=dict)
    monkeypatch.setattr(keywords, "open_run", lambda: run)
    monkeypatch.setattr(keywords, "current_run", lambda: run)
    with pytest.raises(Error, match=r"BENCH ERROR: .*No space left on device"):
        library.close_bench()
    assert closed == ["bench"]
    library.close_bench()  # harmless


def test_the_consumer_of_a_producing_target_is_no_subject(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Both are on, the consumer first, provisioned and restored; the manifest has the target's facts."""
    restored: list[str] = []

    class Provisioner:
        def __init__(self, _node: object, target: TargetSpec) -> None:
            self.kind = target.kind

        def prepare(self, folder: Path) -> Provisioned:
            (folder / "facts-after.json").write_text("{}")
            return Provisioned({"hostname": self.kind}, 0, [])

        def restore(self) -> None:
            restored.append(self.kind)

    powered: list[set[str]] = []

    def power_on(names: Iterable[str]) -> None:
        powered.append(set(names))

    library: Any = BenchLibrary()
    ways: list[tuple[str, str]] = []

    def give_way(name: str, other: str) -> None:
        assert powered == [{other, "producer-12"}]
        ways.append((name, other))

    library._bench = SimpleNamespace(spec=SPEC, power_on=power_on, node=str, give_way=give_way)
    monkeypatch.setattr(keywords, "Provisioner", Provisioner)
    monkeypatch.setattr(keywords, "say", len)
    run = RunFolder.create(tmp_path, "virtual", "ci")
    set_current_run(run)
    try:
        with pytest.raises(SkipExecution, match="no target 'nobody'; there are: linux-rt"):
            library.provision_target_and_consumer("embedded", "nobody")
        library.provision_target_and_consumer("embedded", "linux-rt")
    finally:
        set_current_run(None)
    assert powered == [{"linux-rt", "producer-12"}, {"embedded"}]
    assert ways == [("embedded", "linux-rt")]
    assert run.manifest.target == {"embedded": {"hostname": "embedded"}}
    folder = run.path / "evidence" / "provisioning"
    assert {str(path.relative_to(folder)) for path in folder.rglob("*.json")} == {
        "embedded/facts-after.json",
        "embedded/consumer/facts-after.json",
    }
    for target in ("embedded", "linux-rt"):
        library.restore_target(target)
    assert restored == ["embedded", "linux-rt"]
