# SPDX-License-Identifier: Apache-2.0
"""A bench is closed whatever fails on the way; a consumer is prepared and given back, and not under test."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, NoReturn

import pytest
from robot.api import Error, SkipExecution

from hw.bench import TargetSpec, load_bench
from hw.errors import BenchError
from hw.instrument_facts import instrument_facts
from hw.provisioning import ProvisioningResult
from reports.run.current import current_run, set_current_run, take_at_end
from reports.run.folder import RunFolder
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
        consoles="Booting Linux {}".split,
        instruments=SimpleNamespace(facts=dict),
        virtual=SimpleNamespace(powered_guests=set),
    )
    manifest = SimpleNamespace(host={})
    run = SimpleNamespace(evidence_folder=evidence_folder, update=dict, manifest=manifest)
    monkeypatch.setattr(keywords, "open_run", lambda: run)
    monkeypatch.setattr(keywords, "current_run", lambda: run)
    with pytest.raises(OSError, match="No space left on device"):
        library.shut()
    assert closed == ["bench"]
    library.shut()  # harmless
    library.close_bench()


def test_the_consumer_of_a_producing_target_is_no_subject(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Both are on, the consumer first, provisioned and restored; the manifest has the target's facts."""
    restored: list[str] = []

    class Provisioner:
        def __init__(self, _node: object, target: TargetSpec) -> None:
            self.kind = target.kind

        def prepare(self, folder: Path) -> ProvisioningResult:
            (folder / "facts-after.json").write_text("{}")
            return ProvisioningResult({"hostname": self.kind}, 0, [])

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

    virtual = SimpleNamespace(give_way=give_way, powered_guests=set)
    library._bench = SimpleNamespace(spec=SPEC, power_on=power_on, node=str, virtual=virtual, is_off=len)
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


class _Guests:
    """The nodes of a bench as guests of this machine."""

    def __init__(self, on: set[str]) -> None:
        self._on = on

    def powered_guests(self) -> set[str]:
        return {*self._on}

    def take_back_way(self, name: str) -> None:
        assert name in self._on


class _Bench:
    """A bench whose nodes are names."""

    def __init__(self) -> None:
        self.spec = SPEC
        self.on: set[str] = set()
        self.off: list[str] = []
        self.said = ["first boot", "second boot"]
        self.instruments = SimpleNamespace(facts=dict)
        self.virtual = _Guests(self.on)

    def power_on(self, names: Iterable[str]) -> None:
        self.on |= {*names}

    def power_off(self, name: str) -> None:
        self.on.remove(name)
        self.off.append(name)

    def is_off(self, name: str) -> bool:
        return name not in self.on

    def node(self, name: str) -> str:
        return name

    def consoles(self, name: str) -> list[str]:
        return self.said if name == "linux-rt" else []


class _Provisioner:
    """Facts of a target, and what was done to it."""

    done: ClassVar[list[str]] = []
    found: ClassVar[dict[str, Any]] = {}

    def __init__(self, _node: object, target: TargetSpec) -> None:
        self.kind = target.kind

    def prepare(self, _folder: Path) -> ProvisioningResult:
        self.done.append(f"prepare {self.kind}")
        return ProvisioningResult({"governor": "performance"}, 1, [])

    def facts(self) -> dict[str, Any]:
        if not self.found:
            raise BenchError(f"{self.kind} does not answer")
        return dict(self.found)

    def restore(self) -> None:
        self.done.append(f"restore {self.kind}")


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[tuple[Any, list[_Bench]]]:
    """A library in a run, and the benches that it opens."""
    library: Any = BenchLibrary()
    opened: list[_Bench] = []

    def open_with_faults(file: Path, _faults: object) -> None:
        opened.append(_Bench())
        library._bench, library._file = opened[-1], file

    _Provisioner.done.clear()
    _Provisioner.found.update(governor="performance")
    monkeypatch.setattr(library, "open_with_faults", open_with_faults)
    monkeypatch.setattr(keywords, "Provisioner", _Provisioner)
    monkeypatch.setattr(keywords, "say", len)
    set_current_run(RunFolder.create(tmp_path, "virtual", "ci"))
    yield library, opened
    take_at_end()
    set_current_run(None)


def _suite(library: Any, target: str, besides: str, file: str = "virtual.yaml") -> None:
    library.open_bench(Path(file))
    library.provision_target(target, besides)
    library.close_bench()


def test_suites_of_a_run_share_a_bench(held: tuple[Any, list[_Bench]]) -> None:
    """A target stays provisioned; what a suite does not need is off; the end of the run gives all back."""
    library, opened = held
    _suite(library, "linux-rt", "time server")
    assert opened[0].on == {"linux-rt", "grandmaster"}
    _suite(library, "linux-rt", "producers")
    assert opened[0].on == {"linux-rt", "producer-12", "impair"}
    assert _Provisioner.done == ["prepare linux-rt"]
    _suite(library, "embedded", "nothing")
    assert opened[0].on == {"embedded"}
    _suite(library, "linux-rt", "nothing")
    assert _Provisioner.done == ["prepare linux-rt", "prepare embedded", "prepare linux-rt"]
    [shut] = take_at_end()
    shut()
    assert library._bench is None
    assert len(opened) == 1
    consoles = current_run().path / "evidence" / "consoles"
    assert [path.read_text() for path in sorted(consoles.rglob("*.log"))] == opened[0].said


def test_a_suite_around_keeps_what_it_has_powered_on(held: tuple[Any, list[_Bench]]) -> None:
    library, opened = held
    library.open_bench(Path("virtual.yaml"))
    library.provision_target("linux-rt", "time server")
    opened[0].power_on(["producer-12"])
    library.provision_target("linux-rt", "time server")
    assert opened[0].off == []


@pytest.mark.parametrize("found", [{"governor": "powersave"}, {}])
def test_a_target_that_a_suite_has_changed_starts_afresh(
    held: tuple[Any, list[_Bench]], found: dict[str, str]
) -> None:
    library, opened = held
    _Provisioner.found.clear()
    _Provisioner.found.update(found)
    _suite(library, "linux-rt", "nothing")
    assert opened[0].off == ["linux-rt"]
    _suite(library, "linux-rt", "nothing")
    assert _Provisioner.done == ["prepare linux-rt"] * 2


def test_a_real_target_gets_its_settings_back(
    held: tuple[Any, list[_Bench]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing cuts the power of a real machine: it is given back with the next target, and at the end."""
    library, opened = held

    def none(_guests: _Guests) -> set[str]:
        return set()

    monkeypatch.setattr(_Guests, "powered_guests", none)
    _suite(library, "linux-rt", "nothing")
    _suite(library, "embedded", "nothing")
    assert _Provisioner.done[-2:] == ["restore linux-rt", "prepare embedded"]
    library.shut()
    assert _Provisioner.done[-1] == "restore embedded"
    assert opened[0].off == []


def test_another_bench_is_opened_after_the_first_is_shut(held: tuple[Any, list[_Bench]]) -> None:
    library, opened = held
    _suite(library, "linux-rt", "nothing")
    _suite(library, "linux-rt", "nothing", "other.yaml")
    assert len(opened) == 2
    assert _Provisioner.done == ["prepare linux-rt"] * 2


def test_what_a_suite_has_put_on_ends_before_it_is_seen_what_it_has_left(
    held: tuple[Any, list[_Bench]],
) -> None:
    library, opened = held
    library.open_bench(Path("virtual.yaml"))
    library.provision_target("linux-rt", "nothing")
    stack = ExitStack()
    stack.callback(_Provisioner.found.update, governor="performance")
    library.until_left(stack)
    _Provisioner.found.update(governor="of the stack")
    library.close_bench()
    assert opened[0].off == []
    stack.callback(_Provisioner.done.append, "stack off")
    library.until_left(stack)
    library.shut()
    assert _Provisioner.done[-1] == "stack off"


@pytest.mark.parametrize("virtual", [True, False])
def test_what_cannot_be_taken_off_leaves_no_target_to_the_next_suite(
    held: tuple[Any, list[_Bench]], monkeypatch: pytest.MonkeyPatch, virtual: bool
) -> None:
    """Facts need not show it: the target starts afresh, and the end of the run gives the bench back."""
    library, opened = held

    def none(_guests: _Guests) -> set[str]:
        return set()

    def stuck() -> NoReturn:
        raise BenchError("network stack kernel-tuned: `restore`: exit code 1")

    if not virtual:
        monkeypatch.setattr(_Guests, "powered_guests", none)
    library.open_bench(Path("virtual.yaml"))
    library.provision_target("linux-rt", "nothing")
    stack = ExitStack()
    stack.callback(stuck)
    library.until_left(stack)
    with pytest.raises(Error, match="kernel-tuned: `restore`"):
        library.close_bench()
    assert opened[0].off == (["linux-rt"] if virtual else [])
    assert _Provisioner.done[1:] == ([] if virtual else ["restore linux-rt"])
    _suite(library, "linux-rt", "nothing")
    assert _Provisioner.done[-1] == "prepare linux-rt"
    assert len(take_at_end()) == 1


def test_what_an_instrument_said_of_itself_stays_when_the_bench_is_opened_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The oscilloscope answers in the first suite alone; the manifest goes on saying which one it was."""
    name = next(iter(SPEC.oscilloscopes))
    replies = iter([{name: "KEYSIGHT,MSO-X 3104T,MY1,07.50"}, {}])

    def silent(_node: str) -> list[str]:
        return []

    def open_bench(_file: Path, _faults: object) -> Any:
        identities: dict[str, str] = {}
        bench = SimpleNamespace(
            spec=SPEC,
            virtual=SimpleNamespace(accelerator=str, powered_guests=set),
            instruments=SimpleNamespace(facts=lambda: instrument_facts(SPEC, identities)),
            answer=lambda: identities.update(next(replies)),
            consoles=silent,
        )
        return nullcontext(bench)

    monkeypatch.setattr(keywords, "open_bench", open_bench)
    monkeypatch.setattr(keywords, "tool_versions", dict)
    monkeypatch.setattr(keywords, "say", len)
    run = RunFolder.create(tmp_path, "virtual", "ci")
    set_current_run(run)
    library: Any = BenchLibrary()
    try:
        for _suite_of_the_run in range(2):
            library.open_bench(Path("virtual.yaml"))
            library._bench.answer()
            library.shut()
    finally:
        set_current_run(None)
    found = run.manifest.host["instruments"]
    assert found[name] == instrument_facts(SPEC, {name: "KEYSIGHT,MSO-X 3104T,MY1,07.50"})[name]
    assert found.keys() == instrument_facts(SPEC, {}).keys()
