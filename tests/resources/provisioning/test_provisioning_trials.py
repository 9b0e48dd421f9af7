# SPDX-License-Identifier: Apache-2.0
"""Trials of provisioning on a target that is played: what differs is counted, what is not noticed is told."""

from __future__ import annotations

import json
import time
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from hw.errors import BenchError, CapabilityError, MeasurementError
from resources.provisioning import procedure as provisioning
from resources.provisioning.procedure import ProvisioningTrials

LOST = "target: has lost its power"


class _PlayedTarget:
    """A target with three settings, an undo file, and power; its faults are attributes."""

    def __init__(self) -> None:
        self.settings = {"a": 0, "b": 0, "c": 0}
        self.undo: dict[str, int] = {}
        self.powered = True
        self.unstable = ""
        """Setting that a second `apply` changes again."""
        self.forgotten = ""
        """Setting that `restore` leaves."""
        self.keeps = False
        """Whether settings and undo file outlive a power cut."""
        self.apply_s = 0.0

    def check_power(self) -> None:
        if not self.powered:
            raise BenchError(LOST)

    def apply(self, evidence: Path) -> list[dict[str, Any]]:
        time.sleep(self.apply_s)
        self.check_power()
        changed = [name for name, value in self.settings.items() if value == 0 or name == self.unstable]
        for name in changed:
            self.undo.setdefault(name, self.settings[name])
            self.settings[name] = 1
        evidence.write_text("")
        return [{"item": name, "changed": name in changed} for name in self.settings]

    def restore(self) -> int:
        self.check_power()
        given_back = [name for name in self.undo if name != self.forgotten]
        for name in given_back:
            self.settings[name] = self.undo.pop(name)
        self.undo.clear()
        return len(given_back)

    def facts_text(self) -> str:
        self.check_power()
        return json.dumps({"settings": self.settings})


class _PlayedBench:
    """The bench of a played target."""

    def __init__(self, target: _PlayedTarget) -> None:
        self.target = target
        self.notices = True
        self.switchable = True
        self.stopped = 0
        self.spec = SimpleNamespace(node="target", kind="played")

    def node(self, _name: str) -> Any:
        def start(_argv: list[str], _stem: Path) -> _PlayedBench:
            return self

        return SimpleNamespace(start=start)

    def tool(self, _name: str) -> str:
        return "bw-traffic"

    name = "bw-traffic witness on target"

    def wait_ready(self, _timeout_s: float) -> None:
        self.target.check_power()

    def wait(self, _timeout_s: float) -> int:
        if self.notices:
            self.target.check_power()
        return 0

    def stop(self) -> None:
        self.stopped += 1

    def cut_power(self, name: str) -> None:
        if not self.switchable:
            raise CapabilityError(f"{name}: its power cannot be switched")
        self.target.powered = False

    restart = cut_power

    def power_on(self, _names: list[str]) -> None:
        self.target.powered = True
        if not self.target.keeps:
            self.target.settings = dict.fromkeys(self.target.settings, 0)
            self.target.undo.clear()


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> _PlayedTarget:
    """Return a target without faults, that every provisioner works on."""
    played = _PlayedTarget()

    def provisioner(_node: Any, _target: Any) -> _PlayedTarget:
        return played

    monkeypatch.setattr(provisioning, "Provisioner", provisioner)
    return played


def trials(target: _PlayedTarget, folder: Path) -> tuple[ProvisioningTrials, _PlayedBench]:
    bench: Any = _PlayedBench(target)
    said: list[str] = []
    return ProvisioningTrials(bench, bench.spec, folder, said.append), bench


def test_a_good_target_differs_in_nothing(target: _PlayedTarget, tmp_path: Path) -> None:
    twice, restored = trials(target, tmp_path)[0].provision_and_restore(3)
    assert [each.differences for each in twice] == [each.differences for each in restored] == [()] * 3
    assert all(path.is_file() for each in twice for path in each.evidence)


def test_a_setting_that_is_set_again_and_one_that_stays_are_counted(
    target: _PlayedTarget, tmp_path: Path
) -> None:
    target.unstable = "b"
    assert trials(target, tmp_path)[0].provision_and_restore(1)[0][0].differences == ("setting b",)
    target.forgotten = "c"
    assert trials(target, tmp_path)[0].provision_and_restore(1)[1][0].differences == ("settings.c",)


def test_where_nothing_is_set_nothing_can_be_said(target: _PlayedTarget, tmp_path: Path) -> None:
    target.settings = dict.fromkeys(target.settings, 1)
    with pytest.raises(MeasurementError, match="there was nothing to be set before"):
        trials(target, tmp_path)[0].provision_and_restore(1)


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("number", [1, 2])
def test_after_a_power_cut_a_good_target_is_as_before(
    target: _PlayedTarget, tmp_path: Path, keeps: bool, number: int
) -> None:
    target.keeps = keeps
    work, _bench = trials(target, tmp_path)
    work.provision_and_restore(1)
    target.apply_s = 0.05
    assert work.cut_power(number, Random(1)).differences == ()
    assert target.undo == {}


def test_what_a_power_cut_leaves_is_counted(target: _PlayedTarget, tmp_path: Path) -> None:
    target.keeps, target.forgotten = True, "a"
    work, _bench = trials(target, tmp_path)
    assert work.cut_power(1, Random(1)).differences == ("settings.a",)


def test_a_power_cut_or_restart_that_nobody_notices_is_no_result(
    target: _PlayedTarget, tmp_path: Path
) -> None:
    work, bench = trials(target, tmp_path)
    bench.notices = False
    for event in (lambda: work.cut_power(1, Random(1)), lambda: work.restart(1)):
        with pytest.raises(MeasurementError, match="as if nothing had happened"):
            event()
        target.powered = True


def test_a_restart_is_followed_by_the_same_state(target: _PlayedTarget, tmp_path: Path) -> None:
    work, _bench = trials(target, tmp_path)
    work.provision_and_restore(1)
    assert work.restart(1).differences == ()


def test_a_target_that_cannot_be_interrupted_is_given_back(target: _PlayedTarget, tmp_path: Path) -> None:
    work, bench = trials(target, tmp_path)
    bench.switchable = False
    for number, event in enumerate((lambda: work.cut_power(1, Random(1)), lambda: work.restart(1)), start=1):
        with pytest.raises(CapabilityError, match="its power cannot be switched"):
            event()
        assert bench.stopped == number
        assert set(target.settings.values()) == {0}


def test_a_trial_that_was_broken_off_is_undone_at_the_end(target: _PlayedTarget, tmp_path: Path) -> None:
    work, bench = trials(target, tmp_path)
    bench.notices = False
    with pytest.raises(MeasurementError):
        work.cut_power(1, Random(1))
    target.powered, target.keeps = True, True
    assert set(target.settings.values()) == {1}
    work.end()
    assert set(target.settings.values()) == {0}
    target.powered = False
    work.end()  # nothing is left to be done: the target is not asked
