# SPDX-License-Identifier: Apache-2.0
"""The verb witness: it finds a stall that was made on purpose, and says what a machine had left."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.patience import HANG_S, wait_until
from tests.traffic_gen.clock.clock_page import run

Json = dict[str, Any]

# Holds a CPU at a priority above the witness's, and prints from when to when, in TAI ns.
HOG = """
import os, sys, time
from tests.traffic_gen.lab import tai_ns
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(95))
tai_ns()
start_ns = tai_ns()
while tai_ns() - start_ns < 40_000_000:
    pass
print(start_ns, tai_ns())
"""

# Makes interrupts on a CPU five times: all timers that there may be, at one instant. Sleeps meanwhile.
TIMERS = """
import ctypes, os, resource, struct, sys, time
_, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
os.sched_setaffinity(0, {int(sys.argv[1])})
libc = ctypes.CDLL(None)
timers = [libc.timerfd_create(time.CLOCK_MONOTONIC, 0) for _ in range(min(limit, 100_000) - 100)]
for _ in range(5):
    instant_ns = time.monotonic_ns() + 300_000_000
    when = struct.pack("qqqq", 0, 0, *divmod(instant_ns, 10**9))
    for timer in timers:
        libc.timerfd_settime(timer, 1, when, None)
    time.sleep(max(0.0, (instant_ns - time.monotonic_ns()) / 1e9) + 0.05)
"""

# Wants all of a CPU, in a thread that is not its first, and prints the thread's number. Tests may run in the
# idle class, which gets nothing for seconds: this does not.
SPINNER = """
import os, sys, threading
os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
def spin():
    os.sched_setaffinity(0, {int(sys.argv[1])})
    print(threading.get_native_id(), flush=True)
    while True:
        pass
threading.Thread(target=spin).start()
"""

ENOUGH_NS = 20_000_000
"""CPU time of a thread that nobody takes for none."""


@dataclass(frozen=True)
class _Wakeup:
    """A record of the file that --series makes."""

    wake_tai_ns: int
    late_ns: int
    cpu: int
    ran_ns: tuple[int, ...]


@dataclass(frozen=True)
class _Series:
    """What the file says."""

    period_ns: int
    cpus: tuple[int, ...]
    tids: tuple[int, ...]
    wakeups: tuple[_Wakeup, ...]


def _read_series(path: Path) -> _Series:
    """Read a file as docs/native-tools.md describes it."""
    content = path.read_bytes()
    magic, cpu_count, thread_count, period_ns = struct.unpack_from("<8sIIq", content)
    assert magic == b"BWCAP1\n\0"
    ids = struct.Struct(f"<{cpu_count + thread_count}i")
    numbers = ids.unpack_from(content, 24)
    records = struct.iter_unpack(f"<qii{thread_count}i", content[24 + ids.size :])
    return _Series(
        period_ns,
        numbers[:cpu_count],
        numbers[cpu_count:],
        tuple(_Wakeup(wake, late, cpu, tuple(ran)) for wake, late, cpu, *ran in records),
    )


@contextmanager
def _spinning(cpu: int) -> Generator[int]:
    """Give the number of a thread of another process that wants all of a CPU."""
    with subprocess.Popen(
        [sys.executable, "-c", SPINNER, str(cpu)], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout
            yield int(process.stdout.readline())
        finally:
            process.kill()


def _cpu_time_ns(tid: int) -> int:
    return int(Path(f"/proc/{tid}/schedstat").read_text().split()[0])


def _let_run(tid: int) -> None:
    """Wait until a thread has had some time on a CPU."""
    begin_ns = _cpu_time_ns(tid)
    wait_until(lambda: _cpu_time_ns(tid) - begin_ns >= ENOUGH_NS, f"CPU time of thread {tid}")


def _ended() -> int:
    """Return the number of a process that has ended."""
    with subprocess.Popen(["true"]) as process:
        process.wait()
    return process.pid


def _witness(program: Path, *arguments: str) -> subprocess.Popen[str]:
    process = subprocess.Popen([program, "witness", *arguments], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert json.loads(process.stdout.readline())["type"] == "ready"
    return process


def _result(process: subprocess.Popen[str]) -> Json:
    output, _ = process.communicate(timeout=HANG_S)
    return json.loads(output.splitlines()[-1])


@pytest.mark.simulated
@pytest.mark.timed
def test_held_cpu_is_a_stall_window(bw_traffic: Path, repository: Path) -> None:
    cpu = max(os.sched_getaffinity(0))
    with _witness(bw_traffic) as process:
        hog = subprocess.run(
            [sys.executable, "-c", HOG, str(cpu)], cwd=repository, capture_output=True, text=True, check=True
        )
        process.send_signal(signal.SIGTERM)
        result = _result(process)
    start_ns, end_ns = (int(word) for word in hog.stdout.split())
    windows = [window for window in result["windows"] if window[2] == cpu]
    # The first wake-up that the hog delays is due within a period of its start.
    assert any(window[0] <= start_ns + 500_000 and window[1] >= end_ns for window in windows), result
    (watched,) = [entry for entry in result["cpus"] if entry["cpu"] == cpu]
    assert watched["stalls"] >= 1
    assert watched["max_ns"] >= end_ns - start_ns - 500_000
    assert result["stalled_ns"] >= end_ns - start_ns - 500_000
    assert result["stalled_fraction"] == pytest.approx(result["stalled_ns"] / result["elapsed_ns"])


def test_signal_ends_a_bounded_run_early(bw_traffic: Path) -> None:
    with _witness(bw_traffic, "--duration-ms", "60000") as process:
        process.send_signal(signal.SIGTERM)
        result = _result(process)
    assert process.returncode == 4
    assert result["complete"] is False


def test_all_cpus_are_watched_for_the_duration(bw_traffic: Path) -> None:
    with _witness(bw_traffic, "--duration-ms", "300") as process:
        result = _result(process)
    assert process.returncode == 0
    assert {entry["cpu"] for entry in result["cpus"]} == os.sched_getaffinity(0)
    assert result["elapsed_ns"] >= 300_000_000
    for entry in result["cpus"]:
        assert 0 < entry["samples"] <= result["elapsed_ns"] // 500_000


def test_absent_cpu_is_a_missing_capability(bw_traffic: Path) -> None:
    absent = max(os.sched_getaffinity(0)) + 1
    code, _, errors = run(bw_traffic, "witness", "--cpu", str(absent), "--duration-ms", "100")
    assert code == 3
    assert f"CPU {absent} cannot be watched" in errors


def test_target_without_an_account_is_a_missing_capability(bw_traffic: Path, tmp_path: Path) -> None:
    """An account that is not there, or none of CPUs, may not read as a target that never ran."""
    (tmp_path / "text").write_text("no numbers\n")
    for file in (tmp_path / "absent", tmp_path / "text"):
        code, _, errors = run(bw_traffic, "witness", "--target", str(file), "--duration-ms", "100")
        assert code == 3
        assert f"--target: {file}: " in errors


@pytest.mark.skipif(max(os.sched_getaffinity(0)) == 0, reason="needs a CPU besides the first")
def test_account_that_lacks_a_cpu_says_nothing_of_the_target(bw_traffic: Path, tmp_path: Path) -> None:
    account = tmp_path / "usage"
    account.write_text("1 \n")
    with _witness(bw_traffic, "--target", str(account)) as process:
        process.send_signal(signal.SIGTERM)
        result = _result(process)
    assert result["target_ran_ns"] is None


def test_capacity_is_told_only_when_asked_for(bw_traffic: Path) -> None:
    with _witness(bw_traffic, "--duration-ms", "50", "--period-us", "700", "--threshold-us", "90") as process:
        result = _result(process)
    assert (result["period_ns"], result["threshold_ns"]) == (700_000, 90_000)
    assert result["threads"] == []
    assert result["series_dropped"] is None
    assert all(entry["idle_ns"] is None and entry["utilisation"] is None for entry in result["cpus"])


def test_awake_threads_are_of_the_idle_class_on_their_cpus(bw_traffic: Path) -> None:
    cpus = os.sched_getaffinity(0)
    found: dict[int, set[int]] = {}
    with _witness(bw_traffic, "--awake") as process:

        def are_bound() -> bool:
            tids = [int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir()]
            idle = [tid for tid in tids if os.sched_getscheduler(tid) == os.SCHED_IDLE]
            bound = {tid: os.sched_getaffinity(tid) for tid in idle}
            found.update({tid: bound[tid] for tid in idle if len(bound[tid]) == 1})
            return len(found) >= len(cpus)

        wait_until(are_bound, "a thread of the idle class on each CPU")
        process.send_signal(signal.SIGTERM)
        result = _result(process)
    assert process.returncode == 0
    assert sorted(map(sorted, found.values())) == [[cpu] for cpu in sorted(cpus)]
    assert "IDLE" not in result["scheduling"]["note"]


def test_awake_cpus_tell_what_nobody_wanted(bw_traffic: Path) -> None:
    with _witness(bw_traffic, "--duration-ms", "400", "--awake") as process:
        result = _result(process)
    assert process.returncode == 0
    for entry in result["cpus"]:
        assert entry["idle_ns"] > 0
        share = 1 - entry["idle_ns"] / result["elapsed_ns"]
        assert entry["utilisation"] == pytest.approx(min(max(share, 0), 1))


def test_what_others_want_of_an_awake_cpu_is_not_idle(bw_traffic: Path) -> None:
    cpu = max(os.sched_getaffinity(0))
    with _witness(bw_traffic, "--cpu", str(cpu), "--awake") as process, _spinning(cpu) as tid:
        before_ns = _cpu_time_ns(tid)
        _let_run(tid)
        busy_ns = _cpu_time_ns(tid) - before_ns
        # Ends although the CPU is wanted by others.
        process.send_signal(signal.SIGTERM)
        result = _result(process)
    (entry,) = result["cpus"]
    assert busy_ns > 0
    assert entry["idle_ns"] <= result["elapsed_ns"] - busy_ns
    assert entry["utilisation"] >= busy_ns / result["elapsed_ns"] - 1e-6


@pytest.mark.simulated
@pytest.mark.timed
def test_what_interrupts_took_of_an_awake_cpu_is_claimed_by_nobody(bw_traffic: Path) -> None:
    """They stall the witness as a pause of the machine does, and may be the target's own."""
    cpu = max(os.sched_getaffinity(0))
    arguments = ["--cpu", str(cpu), "--awake", "--period-us", "250", "--threshold-us", "500"]
    with _witness(bw_traffic, *arguments) as process:
        subprocess.run([sys.executable, "-c", TIMERS, str(cpu)], check=True)
        process.send_signal(signal.SIGTERM)
        result = _result(process)
    between_ns = [end - start + 250_000 for start, end, _cpu in result["windows"]]
    unclaimed_ns = result["unclaimed_ns"]
    assert len(unclaimed_ns) == len(between_ns)
    assert all(0 <= own <= longest + 1000 for own, longest in zip(unclaimed_ns, between_ns, strict=True))
    # Without interrupts nobody claims more than the period before a wake-up was due.
    assert max(unclaimed_ns) > 3 * 250_000


@pytest.mark.simulated
def test_first_window_tells_of_no_more_than_a_period_before_it(bw_traffic: Path) -> None:
    """A witness that reads threads begins a quarter of a period later than the others."""
    cpu, period_ns = max(os.sched_getaffinity(0)), 200_000_000
    arguments = ["--cpu", str(cpu), "--awake", "--period-us", str(period_ns // 1000), "--threshold-us", "1"]
    arguments += ["--thread", str(os.getpid()), "--duration-ms", "700"]
    with _witness(bw_traffic, *arguments) as process:
        result = _result(process)
    (start, end, _cpu), *_ = result["windows"]
    assert 0 <= result["unclaimed_ns"][0] <= end - start + period_ns + 1000


@pytest.mark.simulated
@pytest.mark.timed
def test_what_another_process_took_of_an_awake_cpu_is_claimed(bw_traffic: Path, repository: Path) -> None:
    cpu = max(os.sched_getaffinity(0))
    with _witness(bw_traffic, "--cpu", str(cpu), "--awake", "--period-us", "250") as process:
        subprocess.run([sys.executable, "-c", HOG, str(cpu)], cwd=repository, capture_output=True, check=True)
        process.send_signal(signal.SIGTERM)
        result = _result(process)
    held = [
        (end - start, unclaimed)
        for (start, end, _cpu), unclaimed in zip(result["windows"], result["unclaimed_ns"], strict=True)
        if end - start > 35_000_000
    ]
    assert held
    assert all(unclaimed < length / 2 for length, unclaimed in held)


def test_a_cpu_that_may_sleep_tells_nothing_of_who_claims_it(bw_traffic: Path) -> None:
    with _witness(bw_traffic, "--duration-ms", "50") as process:
        result = _result(process)
    assert "unclaimed_ns" not in result


def test_threads_of_others_are_read_until_they_end(bw_traffic: Path) -> None:
    cpu = max(os.sched_getaffinity(0))
    with _spinning(cpu) as kept, _spinning(cpu) as lost:
        tids = [kept, lost, _ended()]
        with _witness(bw_traffic, "--thread", ",".join(map(str, tids))) as process:
            _let_run(kept)
            os.kill(lost, signal.SIGKILL)
            wait_until(lambda: not Path(f"/proc/{lost}/schedstat").exists(), "the end of a thread")
            _let_run(kept)  # the witness looks at them meanwhile
            process.send_signal(signal.SIGTERM)
            result = _result(process)
    assert process.returncode == 0
    assert [thread["tid"] for thread in result["threads"]] == tids
    assert [thread["lost"] for thread in result["threads"]] == [False, True, True]
    assert result["threads"][0]["ran_ns"] > 0
    assert result["threads"][2]["ran_ns"] == 0


def test_series_agrees_with_the_result(bw_traffic: Path, tmp_path: Path) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    path = tmp_path / "capacity.bin"
    limits = ["--duration-ms", "300", "--period-us", "250", "--threshold-us", "20"]
    with (
        _spinning(cpus[-1]) as tid,
        _witness(bw_traffic, *limits, "--thread", str(tid), "--series", str(path)) as process,
    ):
        result = _result(process)
    assert process.returncode == 0
    series = _read_series(path)
    assert (series.period_ns, series.cpus, series.tids) == (250_000, tuple(cpus), (tid,))
    assert len(series.wakeups) == sum(entry["samples"] for entry in result["cpus"]) - result["series_dropped"]
    assert result["series_dropped"] == 0
    for entry in result["cpus"]:
        own = [wakeup for wakeup in series.wakeups if wakeup.cpu == entry["cpu"]]
        assert len(own) == entry["samples"]
        assert max(wakeup.late_ns for wakeup in own) == entry["max_ns"]
    late = {(w.wake_tai_ns - w.late_ns, w.wake_tai_ns, w.cpu) for w in series.wakeups if w.late_ns > 20_000}
    assert late == {tuple(window) for window in result["windows"]}
    assert sum(wakeup.ran_ns[0] for wakeup in series.wakeups) == result["threads"][0]["ran_ns"] > 0
    assert all(wakeup.ran_ns == (0,) for wakeup in series.wakeups if wakeup.cpu != cpus[0])


def test_series_that_cannot_be_written_is_no_result(bw_traffic: Path) -> None:
    done = subprocess.run(
        [bw_traffic, "witness", "--duration-ms", "10", "--series", "/dev/full"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert "/dev/full: No space left on device" in done.stderr
    assert '"result"' not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--thread", ",".join(["1"] * 17)], "--thread: 17 threads; allowed: 16 at most"),
        (["--thread", "0"], '--thread: "0" is out of range; allowed: a list of 1..2147483647'),
        (["--thread", "1,x"], '--thread: "1,x" is not a number'),
        (["--series", "capacity.bin"], "--series needs --duration-ms"),
        (["--series", "/absent/capacity.bin", "--duration-ms", "10"], "/absent/capacity.bin: No such file"),
        (["--awake=1"], "--awake takes no value"),
    ],
)
def test_refused_options(bw_traffic: Path, tmp_path: Path, arguments: list[str], text: str) -> None:
    done = subprocess.run(
        [bw_traffic, "witness", *arguments], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 2
    assert text in done.stderr
    assert done.stdout == ""
    assert not list(tmp_path.iterdir())
