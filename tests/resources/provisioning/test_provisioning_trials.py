# SPDX-License-Identifier: Apache-2.0
"""Trials of provisioning on a target that is played: what differs is counted, what is not noticed is told."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from hw.errors import CapabilityError, MeasurementError
from tests.resources.provisioning.played import PlayedTarget, played_target, trials_of


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> PlayedTarget:
    return played_target(monkeypatch)


def test_a_good_target_differs_in_nothing(target: PlayedTarget, tmp_path: Path) -> None:
    twice, restored = trials_of(target, tmp_path)[0].provision_and_restore(3)
    assert [each.differences for each in twice] == [each.differences for each in restored] == [()] * 3
    assert all(path.is_file() for each in twice for path in each.evidence)


def test_a_setting_that_is_set_again_and_one_that_stays_are_counted(
    target: PlayedTarget, tmp_path: Path
) -> None:
    target.unstable = ("governor",)
    assert trials_of(target, tmp_path)[0].provision_and_restore(1)[0][0].differences == ("setting governor",)
    target.forgotten = ("rmem_max",)
    assert trials_of(target, tmp_path)[0].provision_and_restore(1)[1][0].differences == ("settings.rmem_max",)


def test_where_nothing_is_set_nothing_can_be_said(target: PlayedTarget, tmp_path: Path) -> None:
    target.settings = {name: f"{value}, set" for name, value in target.untouched.items()}
    with pytest.raises(MeasurementError, match="there was nothing to be set before"):
        trials_of(target, tmp_path)[0].provision_and_restore(1)


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("number", [1, 2])
def test_after_a_power_cut_a_good_target_is_as_before(
    target: PlayedTarget, tmp_path: Path, keeps: bool, number: int
) -> None:
    target.keeps = keeps
    work, _bench = trials_of(target, tmp_path)
    work.provision_and_restore(1)
    target.apply_s = 0.05
    assert work.cut_power(number, Random(1)).differences == ()
    assert target.undo == {}


def test_what_a_power_cut_leaves_is_counted(target: PlayedTarget, tmp_path: Path) -> None:
    target.keeps, target.forgotten = True, ("governor",)
    work, _bench = trials_of(target, tmp_path)
    assert work.cut_power(1, Random(1)).differences == ("settings.governor",)


def test_a_power_cut_or_restart_that_nobody_notices_is_no_result(
    target: PlayedTarget, tmp_path: Path
) -> None:
    work, bench = trials_of(target, tmp_path)
    bench.notices = False
    for event in (lambda: work.cut_power(1, Random(1)), lambda: work.restart(1)):
        with pytest.raises(MeasurementError, match="as if nothing had happened"):
            event()
        target.powered = True


def test_a_restart_is_followed_by_the_same_state(target: PlayedTarget, tmp_path: Path) -> None:
    work, _bench = trials_of(target, tmp_path)
    work.provision_and_restore(1)
    assert work.restart(1).differences == ()


def test_a_target_that_cannot_be_interrupted_is_given_back(target: PlayedTarget, tmp_path: Path) -> None:
    work, bench = trials_of(target, tmp_path)
    bench.switchable = False
    for number, event in enumerate((lambda: work.cut_power(1, Random(1)), lambda: work.restart(1)), start=1):
        with pytest.raises(CapabilityError, match="its power cannot be switched"):
            event()
        assert bench.stopped == number
        assert target.settings == target.untouched


def test_a_trial_that_was_broken_off_is_undone_at_the_end(target: PlayedTarget, tmp_path: Path) -> None:
    work, bench = trials_of(target, tmp_path)
    bench.notices = False
    with pytest.raises(MeasurementError):
        work.cut_power(1, Random(1))
    target.powered, target.keeps = True, True
    assert not target.settings.items() & target.untouched.items()
    work.end()
    assert target.settings == target.untouched
    target.powered = False
    work.end()  # nothing is left to be done: the target is not asked
