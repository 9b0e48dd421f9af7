# SPDX-License-Identifier: Apache-2.0
"""The time service's trials: what a profile asks for, what its daemon takes, what its log says."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hw.errors import ConfigError, MeasurementError
from hw.fields import Fields
from reports.clock_sync.trial import Lock
from resources.clock_sync.disturbed_trial import EventLog
from resources.clock_sync.settings import load_stack
from resources.clock_sync.time_service import TimeServiceTrials
from resources.clock_sync.time_service_events import TimeServiceEvents, _told  # pyright: ignore[reportPrivateUsage]
from resources.clock_sync.time_service_times import EVENTS, time_service_times
from resources.clock_sync.time_service_times import TIMES as SERVICE_TIMES
from resources.profiles import has_times, times_of
from tests.fake_bench import FakeBench
from tests.reports.sample_clock import offset_requirement

REQUIREMENT = offset_requirement("CLK-TIMESERVICE", "timeservice", limit_ns=10_000, lock_within_s=60)


def test_acceptance_has_every_row_of_the_papers_table() -> None:
    times = times_of("acceptance", SERVICE_TIMES, time_service_times)
    assert times is not None
    assert [row.interval_s for row in times.rows] == [30, 30, 60, 120, 240, 480, 960]
    assert {row.iterations for row in times.rows if row.interval_s == 30} == {8_000_000, 32_000_000}
    assert times.is_papers_holdover
    assert times.holdover_iterations == 32_000_000
    assert times.events == EVENTS
    ci = times_of("ci", SERVICE_TIMES, time_service_times)
    assert ci is not None
    assert not ci.is_papers_holdover
    assert "rebooted" not in ci.events


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "table_iterations = [6000]",
            "table_iterations = [6000, 1]",
            "as many as table_intervals_s, 1",
        ),
        ('beside = ["chrony"]', 'beside = ["sundial"]', "beside"),
        ('events = ["killed"', 'events = ["forgotten"', "events"),
        ("lost_s = 4", "lost_s = 0", "lost_s"),
    ],
)
def test_a_wrong_table_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    text = SERVICE_TIMES.read_text()
    assert old in text
    file = tmp_path / "times.toml"
    file.write_text(text.replace(old, new, 1))
    with pytest.raises(ConfigError, match=said):
        times_of("ci", file, time_service_times)


def test_a_profile_may_have_none() -> None:
    assert not has_times("quick", SERVICE_TIMES)
    with pytest.raises(ConfigError, match="interval_s: missing"):
        time_service_times(Fields({"table_intervals_s": [1], "table_iterations": [5]}, "times.toml", "ci"))


def _lab(*, answers: bool = True) -> Any:
    """Return a lab whose target says how long a process has run: each look adds a second in each mode."""
    looks = itertools.count(1)

    def answer(_node: str, _argv: Sequence[str]) -> tuple[int, str, str]:
        look = next(looks)
        return (0, f"{100 + look}.5 {100 * look} {100 * look} 100\n", "") if answers else (1, "", "")

    bench = FakeBench(answer=answer)
    target = SimpleNamespace(node="linux-rt", provisioning="linux-rt")
    return SimpleNamespace(bench=bench, target=target, ran=bench.node("linux-rt").ran)


def _cpu_s(lab: Any) -> float | None:
    times: Any = times_of("ci", SERVICE_TIMES, time_service_times)
    return TimeServiceTrials(lab, times)._cpu_s("chronyd")  # pyright: ignore[reportPrivateUsage]


def test_what_a_daemon_takes_is_read_of_its_process() -> None:
    lab = _lab()
    assert (_cpu_s(lab), _cpu_s(lab)) == (2.0, 4.0)
    assert lab.ran[0][-1] == "chronyd"
    assert _cpu_s(_lab(answers=False)) is None
    windows = _lab()
    windows.target.provisioning = "windows"
    assert _cpu_s(windows) is None
    assert not windows.ran, "there is no shell that could be asked"


def test_what_the_log_said_last_of_its_state_is_noted() -> None:
    lines: list[dict[str, Any]] = [
        {"type": "state", "page_state": "starting", "reason": "server stepped", "state": "unsynchronised"},
        {"type": "step", "step_ns": 250_000_000, "epoch": 1, "state": "init"},
        {"type": "sync", "offset_ns": 5, "state": "locked"},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines) + '{"type":"sta'
    assert _told(text) == "step: state init, step_ns 250000000"
    assert _told("".join(json.dumps(line) + "\n" for line in lines[:1])).startswith("state: state unsync")
    assert _told("") == ""


class _Stack:
    """A stack that notes what happens to it."""

    name = "timeservice"
    own_interval_s = 30.0
    spec = load_stack("timeservice", simulated=True)

    def __init__(self, done: list[str]) -> None:
        self.done = done
        self.settings = SimpleNamespace(sync_interval_s=1.0)

    def resume(self) -> None:
        self.done.append("resume")

    def silence_server(self) -> None:
        self.done.append("silence")

    def bring_back_server(self) -> None:
        self.done.append("bring back")

    def keep_running(self, duration_s: float) -> None:
        self.done.append(f"keep {duration_s:g}")

    def wait_locked(self, deadline_s: float) -> Lock:
        assert deadline_s == REQUIREMENT.lock_within_s, "an interval shorter than its own asks for no more"
        self.done.append("lock")
        return Lock(1.0, "rule", 0.5)

    def servo_text(self) -> str:
        return '{"type":"state","state":"locked","reason":"none"}\n'


def test_each_event_ends_with_a_lock() -> None:
    lab = _lab()
    times: Any = times_of("ci", SERVICE_TIMES, time_service_times)
    events = TimeServiceEvents(lab, times)
    done: list[str] = []
    stack: Any = _Stack(done)
    log = EventLog()
    for act in (events._kill, events._lose_server, events._step_system):  # pyright: ignore[reportPrivateUsage]
        act(stack, REQUIREMENT, log)
    assert done == ["resume", "lock", "silence", f"keep {times.lost_s}", "bring back", "lock", "lock", "lock"]
    assert [argv[0] for argv in lab.ran] == ["pkill", "bw-setclock", "bw-setclock"]
    assert [argv[-1] for argv in lab.ran[1:]] == ["3600000000000", "-3600000000000"]
    assert [event.what.split(",")[0] for event in log.events] == [
        "service killed",
        "server lost",
        "server back",
        "system's clock put off by +1 h",
        "system's clock put off by -1 h",
    ]
    assert [event.lock is None for event in log.events] == [False, True, False, False, False]


@pytest.mark.parametrize("locks", [0, 1])
def test_a_clock_that_was_put_off_is_put_back_though_nothing_locks(locks: int) -> None:
    lab = _lab()
    times: Any = times_of("ci", SERVICE_TIMES, time_service_times)

    class Silent(_Stack):
        def wait_locked(self, deadline_s: float) -> Lock:
            if len(self.done) >= locks:
                raise MeasurementError(f"not locked after {deadline_s:g} s")
            return super().wait_locked(deadline_s)

    stack: Any = Silent([])
    with pytest.raises(MeasurementError, match="not locked after 60 s"):
        TimeServiceEvents(lab, times)._step_system(stack, REQUIREMENT, EventLog())  # pyright: ignore[reportPrivateUsage]
    assert [argv[-1] for argv in lab.ran] == ["3600000000000", "-3600000000000"]


@pytest.mark.parametrize("locks", [True, False])
def test_a_server_that_was_stepped_gets_its_time_back(monkeypatch: pytest.MonkeyPatch, locks: bool) -> None:
    lab = _lab()
    lab.server = SimpleNamespace(node="grandmaster")
    times: Any = times_of("nightly", SERVICE_TIMES, time_service_times)
    events = TimeServiceEvents(lab, times)

    def trial(_requirement: object, _kind: str, act: Any) -> tuple[str, str]:
        act(EventLog(), _Stack([]))
        if not locks:
            raise MeasurementError("not locked")
        return "trial", "done"

    monkeypatch.setattr(events, "_by_own_counter", trial)
    if locks:
        found: Any = events.server_stepped(REQUIREMENT)
        assert found == ("trial", "done", 250_000_000)
    else:
        with pytest.raises(MeasurementError, match="not locked"):
            events.server_stepped(REQUIREMENT)
    assert [argv[-1] for argv in lab.bench.node("grandmaster").ran] == ["250000000", "-250000000"]
