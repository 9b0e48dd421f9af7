# SPDX-License-Identifier: Apache-2.0
"""A replay begins before slot 0, or once more with a longer lead; other faults stay faults."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hw.errors import BenchError
from hw.open_bench import OpenBench
from hw.protocols import Job
from resources.daq_replay import replay
from resources.daq_replay.replay import LEADS_S, Replay
from resources.tools.experiment import Experiment

MS = 1_000_000


class _Machine:
    """A machine whose tools take so long to start, and some of which may end instead."""

    def __init__(self, starting_ms: list[float], ending: Callable[[], None] = lambda: None) -> None:
        self.bench = cast("OpenBench", self)
        self.now_ns = 10**18
        self.starting_ms = starting_ms
        self.ending = ending
        self.leads_s = LEADS_S
        self.said: list[str] = []
        self.ended = 0
        self.settings = SimpleNamespace(tai_utc_s=37)
        self.progress = self.said.append

    def _plans(self, *_: object) -> tuple[str, str]:
        return ("plan", "plan")

    def _start(self, experiment: Experiment, *_: object) -> str:
        experiment.add(cast("Job", self))
        self.now_ns += round(self.starting_ms.pop(0) * MS)
        self.ending()
        return "started"

    def stop(self) -> None:
        """End the tool that this stands for."""
        self.ended += 1

    def fetch(self) -> Path:
        """Say that there is nothing."""
        raise BenchError("nothing was written")

    def wait(self, _timeout_s: float) -> int:
        """Return its exit code."""
        return 0

    def _late_ms(self, start_ns: int) -> float:
        return Replay._late_ms(cast("Any", self), start_ns)  # pyright: ignore[reportPrivateUsage]

    def start(self, monkeypatch: pytest.MonkeyPatch) -> str:
        def now_ns(_tai_utc_s: int) -> int:
            return self.now_ns

        monkeypatch.setattr(replay, "_reference_now_ns", now_ns)
        experiment = Experiment(self.bench)
        begin = Replay._start_in_time  # pyright: ignore[reportPrivateUsage]
        started = begin(cast("Any", self), experiment, {}, [], [])
        return cast("str", started)


def _refuse() -> None:
    raise BenchError("bw-traffic send on p01: ended with exit code 4 before it was ready")


def test_tools_that_are_ready_in_time_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = _Machine([LEADS_S[0] * 1000 - 1])
    assert machine.start(monkeypatch) == "started"
    assert (machine.ended, machine.said) == (0, [])


def test_tools_that_are_late_start_once_more_with_a_longer_lead(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = _Machine([LEADS_S[0] * 1000 + 20, LEADS_S[1] * 1000 - 1])
    assert machine.start(monkeypatch) == "started"
    assert machine.ended == 1
    assert machine.said == ["the tools were ready 20 ms after slot 0: starting them once more"]


def test_a_tool_that_found_slot_0_past_starts_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = _Machine([LEADS_S[0] * 1000 + 20, 100])
    machine.ending = lambda: _refuse() if machine.starting_ms else None
    assert machine.start(monkeypatch) == "started"
    assert machine.ended == 1
    assert "exit code 4 before it was ready: starting them once more" in machine.said[0]


def test_a_tool_that_fails_before_slot_0_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = _Machine([100, 100, 100], _refuse)
    with pytest.raises(BenchError, match="exit code 4"):
        machine.start(monkeypatch)
    assert (machine.ended, machine.said) == (1, [])


def test_a_machine_that_is_late_with_every_lead_is_too_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = _Machine([lead_s * 1000 + 1 for lead_s in LEADS_S], _refuse)
    with pytest.raises(BenchError, match=r"exit code 4 before it was ready: the bench is too slow"):
        machine.start(monkeypatch)
    assert machine.ended == len(LEADS_S)
