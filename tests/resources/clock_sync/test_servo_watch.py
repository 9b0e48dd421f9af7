# SPDX-License-Identifier: Apache-2.0
"""What a servo's log says beside its lock: the frequency found, the grandmaster followed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from hw.errors import MeasurementError
from resources.clock_sync.lock import (
    RateGoal,
    is_locked,
    locked_at,
    selected_grandmaster,
    settled_freq_ppb,
)
from resources.clock_sync.servo_watch import wait_grandmaster, wait_settled
from resources.clock_sync.settings import LockRule, load_stack
from resources.clock_sync.stack import ClockStack

RULE = LockRule(offset_ns=1000, consecutive=3, source="test")
(LOG,) = load_stack("ptp-software", simulated=True).logs
LEADER, STANDBY = "525415.fffe.bf1175", "020000.fffe.000002"


def log(*freqs_ppb: int, offset_ns: int = 10) -> str:
    """Return lines of ptp4l, one for each frequency."""
    lines = (
        f"ptp4l[{10 + number}.000]: master offset {offset_ns:10d} s2 freq {freq_ppb:+7d} path delay 500000\n"
        for number, freq_ppb in enumerate(freqs_ppb)
    )
    return "".join(lines)


def test_goal_is_met_by_the_median_of_the_rules_observations() -> None:
    goal = RateGoal(100_000.0, 25_000.0)
    (series,) = LOG.read(log(0, 0, 0, 0, 90_000, 110_000)).series
    assert locked_at(series, RULE, ("s2",)) == 2
    assert locked_at(series, RULE, ("s2",), goal) == 5


@pytest.mark.parametrize(
    ("freqs_ppb", "offset_ns", "locked"),
    [
        ((74_999, 74_999, 74_999), 10, False),
        ((75_000, 75_000, 75_000), 10, True),
        ((125_001, 125_001, 125_001), 10, False),
        ((100_000, 100_000, 100_000), 1000, False),
        ((100_000, 100_000), 10, False),
    ],
)
def test_lock_after_a_change_asks_for_frequency_and_offsets(
    freqs_ppb: tuple[int, ...], offset_ns: int, locked: bool
) -> None:
    text = log(*freqs_ppb, offset_ns=offset_ns)
    assert is_locked(text, LOG, RULE, RateGoal(100_000.0, 25_000.0)) is locked


@pytest.mark.parametrize(
    ("freqs_ppb", "settled_ppb"),
    [
        ((5, 6, 7, 8, 9), None),  # two rows of three are six
        ((0, 0, 0, 500, 500, 500), None),
        ((500, 0, 0, 100, 90, 400), 100.0),
        ((9000, 0, 0, 0, 40, 50, 60), 50.0),
    ],
)
def test_frequency_has_settled_when_two_rows_agree(
    freqs_ppb: tuple[int, ...], settled_ppb: float | None
) -> None:
    assert settled_freq_ppb(log(*freqs_ppb), LOG, RULE, 200.0) == settled_ppb


def test_grandmaster_is_the_one_selected_last() -> None:
    text = f"ptp4l[14.297]: selected best master clock {LEADER}\n" + log(1)
    assert selected_grandmaster(log(1)) == ""
    assert selected_grandmaster(text) == LEADER
    text += f"ptp4l[32.612]: [linux-rt] selected best master clock {STANDBY}\n"
    assert selected_grandmaster(text) == STANDBY
    text += "ptp4l[40.000]: selected local clock 525421.fffe.4f66a6 as best master\n"
    assert selected_grandmaster(text) == "525421.fffe.4f66a6"


def fake_stack(text: str, running: bool = True) -> ClockStack:
    """Stand for a stack whose servo has said this and says no more."""

    def require_running() -> None:
        if not running:
            raise MeasurementError("ptp4l is gone")

    stack: Any = SimpleNamespace(
        name="ptp-software",
        spec=SimpleNamespace(lock=RULE, logs=(LOG,)),
        servo_text=lambda: text,
        require_running=require_running,
    )
    return cast(ClockStack, stack)


def test_waiting_ends_at_once_when_it_is_there() -> None:
    assert wait_settled(fake_stack(log(1, 2, 3, 4, 5, 6)), 100.0, 0.0) == 5.0
    wait_grandmaster(fake_stack(f"ptp4l[1.000]: selected best master clock {LEADER}\n"), LEADER, 0.0)


def test_waiting_has_a_deadline_that_says_what_there_is_instead() -> None:
    with pytest.raises(MeasurementError, match=r"has not settled on a frequency within 0 s, to 0\.1 ppm"):
        wait_settled(fake_stack(log(1, 2)), 100.0, 0.0)
    with pytest.raises(MeasurementError, match=f"follows nobody, not {LEADER}, after 0 s"):
        wait_grandmaster(fake_stack(""), LEADER, 0.0)


def test_a_daemon_that_ends_meanwhile_is_the_cause() -> None:
    with pytest.raises(MeasurementError, match="ptp4l is gone"):
        wait_settled(fake_stack("", running=False), 100.0, 60.0)
    with pytest.raises(MeasurementError, match="ptp4l is gone"):
        wait_grandmaster(fake_stack("", running=False), LEADER, 60.0)
