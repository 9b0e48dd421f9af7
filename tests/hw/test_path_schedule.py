# SPDX-License-Identifier: Apache-2.0
"""Settings of a path that change at stated times, with a clock that is the test's."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence

import pytest

from hw.errors import BenchError, ConfigError
from hw.path_schedule import follow
from hw.path_settings import Flow, PathSettings, RealisedPath
from hw.router import PathDirection

PATH = PathDirection("p02", "switch")


class Clock:
    """Time passes while it is waited for, and while the router is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, takes_s: float) -> None:
        self.now_s, self.takes_s = 100.0, takes_s
        self.did: list[tuple[float, float]] = []
        monkeypatch.setattr(time, "monotonic", lambda: self.now_s)
        monkeypatch.setattr(time, "time_ns", lambda: round(self.now_s * 1e9))

    def sleep(self, duration_s: float) -> None:
        """Let time pass."""
        assert duration_s > 0
        self.now_s += duration_s

    def configure(
        self, paths: Collection[PathDirection], settings: PathSettings, flows: Sequence[Flow] = ()
    ) -> RealisedPath:
        """Note when."""
        assert [*paths] == [PATH]
        self.did.append((self.now_s - 100.0, settings.delay_us))
        self.now_s += self.takes_s
        return RealisedPath("impair", "test1", settings, tuple(flows))

    def clear(self) -> None:
        """Do nothing."""


def test_settings_change_at_their_times(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, 0.25)
    schedule = [(0.0, PathSettings()), (2.0, PathSettings(5_000)), (3.0, PathSettings(100))]
    changes = follow(clock, [PATH], schedule, [Flow("udp")], clock.sleep)
    assert clock.did == [(0.0, 0), (2.0, 5_000), (3.0, 100)]
    assert [each.at_s for each in changes] == [0.0, 2.0, 3.0]
    assert [each.end_utc_ns - each.begin_utc_ns for each in changes] == 3 * [250_000_000]
    assert changes[1].realised == RealisedPath("impair", "test1", PathSettings(5_000), (Flow("udp"),))


def test_a_change_that_is_late_is_made_at_once_and_says_when(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, 3.0)
    changes = follow(clock, [PATH], [(1.0, PathSettings(1)), (2.0, PathSettings(2))], sleep=clock.sleep)
    assert clock.did == [(1.0, 1), (4.0, 2)]
    assert changes[1].begin_utc_ns == 104_000_000_000


@pytest.mark.parametrize("times_s", [(-1.0,), (2.0, 1.0), (1.0, 1.0), (float("nan"),)])
def test_times_that_do_not_ascend_are_refused(
    monkeypatch: pytest.MonkeyPatch, times_s: tuple[float, ...]
) -> None:
    clock = Clock(monkeypatch, 0.0)
    with pytest.raises(ConfigError, match="at_s: must ascend from 0 on, found"):
        follow(clock, [PATH], [(at_s, PathSettings()) for at_s in times_s], sleep=clock.sleep)
    assert not clock.did


def test_an_end_of_the_run_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, 0.0)

    def broken(_duration_s: float) -> None:
        raise BenchError("the run is over")

    with pytest.raises(BenchError, match="the run is over"):
        follow(clock, [PATH], [(0.0, PathSettings()), (9.0, PathSettings())], sleep=broken)
    assert clock.did == [(0.0, 0)]
