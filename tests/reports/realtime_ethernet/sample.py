# SPDX-License-Identifier: Apache-2.0
"""Evidence of single messages in its documented form: made up, with values that a test states."""

from __future__ import annotations

import dataclasses
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reports.realtime_ethernet.evidence import (
    ALONE,
    BESIDE,
    LATENCY,
    THROUGHPUT,
    UDP,
    Messages,
    TracedTrial,
    Trial,
    write_messages,
)
from reports.realtime_ethernet.thread_shares import Trip
from reports.timeline.kernel_recording import write_recording
from tests.reports.sample_run import summary
from tests.reports.timeline.ring_pages import Machine, Page

TARGET, STACK = "linux", "kernel"
BULK_BYTES = 1400
ALONE_KBIT_PER_S = 100_000


def latency_answer(round_trips_ns: Sequence[int], size_bytes: int = 64, **changes: Any) -> dict[str, Any]:
    """Return the `result` of `bw-rtdip latency`, members changed."""
    return {
        "type": "result", "tool": "bw-rtdip latency", "over": UDP, "size_bytes": size_bytes,
        "sent": len(round_trips_ns), "lost": 0, "late": 0, "round_trip": summary(list(round_trips_ns)),
        "receiving": summary([each // 10 for each in round_trips_ns]),
    } | changes  # fmt: skip


def source_answer(
    size_bytes: int = BULK_BYTES, kbit_per_s: int = ALONE_KBIT_PER_S, **changes: Any
) -> dict[str, Any]:
    """Return the `result` of `bw-rtdip source`, a second long, members changed."""
    windows = kbit_per_s * 1000 // (8 * 32 * size_bytes)
    return {
        "type": "result", "tool": "bw-rtdip source", "over": UDP, "size_bytes": size_bytes, "window": 32,
        "messages": windows * 32, "windows": windows, "windows_lost": 0, "blocked": 0,
        "duration_ns": 1_000_000_000, "kbit_per_s": kbit_per_s,
    }  # fmt: skip


def write_answer(folder: Path, name: str, answer: dict[str, Any]) -> str:
    """Write an answer as a tool does, and return the name of its file."""
    (folder / name).write_text(json.dumps({"type": "ready"}) + "\n" + json.dumps(answer) + "\n")
    (folder / name).with_suffix(".err").write_text("")
    return name


def write_sample_messages(
    folder: Path,
    rounds: int = 14,
    rise: float = 1.5,
    bulk_share: float = 0.95,
    over: str = UDP,
    disturbed: Sequence[int] = (),
    n: int = 100,
) -> Messages:
    """Write evidence of round trips of 40 us and more, the longer the later the round, and return it.

    Args:
        folder: It is made.
        rounds: How many.
        rise: By what a bulk receiver multiplies the probe's round trips; by 0.02 more in every other pair.
        bulk_share: What that reaches, of what it reaches alone.
        over: What the tools say.
        disturbed: Rounds whose trials the machine's host took a tenth of.
        n: Round trips of each trial.
    """
    folder.mkdir(parents=True, exist_ok=True)
    trials: list[Trial] = []
    for number in range(rounds):
        stolen = 10 if number in disturbed else 1
        base_ns = [40_000 + 200 * number + 10 * each for each in range(n)]

        def add(
            kind: str, size_bytes: int, answer: dict[str, Any], bulk: dict[str, Any] | None = None
        ) -> None:
            stem = f"{number:03d}-{kind}-{size_bytes}"  # noqa: B023 - called in this turn of the loop
            note: dict[str, Any] = {"scheduling": {"note": stem}}  # no two answers of a tool are the same
            bulk_file = "" if bulk is None else write_answer(folder, f"{stem}-bulk.ndjson", bulk | note)
            file = write_answer(folder, f"{stem}.ndjson", answer | note)
            trials.append(Trial(number, kind, size_bytes, file, bulk_file, stolen, 100))  # noqa: B023

        for size_bytes in (4, 64):
            add(LATENCY, size_bytes, latency_answer(base_ns, size_bytes, over=over))
        for size_bytes in (64, BULK_BYTES):
            add(THROUGHPUT, size_bytes, source_answer(size_bytes) | {"over": over})
        add(ALONE, 64, latency_answer(base_ns, over=over))
        slower_ns = [round(each * (rise + 0.02 * (number // 2 % 2))) for each in base_ns]
        bulk = source_answer(kbit_per_s=round(ALONE_KBIT_PER_S * bulk_share)) | {"over": over}
        add(BESIDE, 64, latency_answer(slower_ns, over=over), bulk)
    messages = Messages(TARGET, STACK, UDP, 1, BULK_BYTES, tuple(trials))
    write_messages(folder, messages)
    return messages


def line(us: int, event: str, rest: str, comm: str = "any: thing") -> str:
    """Return a line of a trace at a time after the thousandth second."""
    return f"     {comm}-12  [000] d..2. 1000.{us:06d}: {event}: {rest}\n"


def switch(us: int, to: tuple[str, int]) -> str:
    """Return the line of a change of threads."""
    about = f"prev_comm=a b prev_pid=9 prev_prio=120 prev_state=R+ ==> next_comm={to[0]} next_pid={to[1]}"
    return line(us, "sched_switch", f"{about} next_prio=49")


def trip(begin_us: int, end_us: int) -> Trip:
    """Return a message that was under way between two times after the thousandth second."""
    return Trip(1_000_000_000_000 + end_us * 1000, (end_us - begin_us) * 1000)


def write_ring_sample(folder: Path, pages: bytes | None = None, file: str = "traced-64-ring.gz") -> Path:
    """Write the evidence of `write_traced_sample` as runs hold it now: with the kernel's ring.

    Args:
        folder: It is made, and returned.
        pages: Of the ring; None: what that has as text.
        file: The ring's.
    """
    it = Machine()
    write_traced_sample(folder, file="traced-64.ndjson", trace_file=file)
    (folder / "traced-64-trace.gz").unlink()
    page = Page(it, 1_000_000_000_000).event(0, it.switch(b"rtdip-sink", 300))
    page.extend(199_200_000).event(0, it.switch(b"rtdip-echo", 301))
    page.extend(800_799_000).event(0, it.switch(b"sh", 7))
    raw = folder / "cpu3"
    raw.write_bytes(page.packed() if pages is None else pages)
    write_recording(folder / file, it.description(3), {3: raw})
    raw.unlink()
    return folder


def write_traced_sample(folder: Path, trace: bytes | None = None, **changes: Any) -> Path:
    """Write evidence of a run before 0.2.2: a traced trial of 200 messages, a millisecond apart, ever longer.

    Args:
        folder: It is made, and returned.
        trace: The trace's file; None: the bulk receiver has the CPU, then the echo.
        changes: Members of `TracedTrial`.
    """
    messages = write_sample_messages(folder)
    traced = TracedTrial("", "traced-64.ndjson", "traced-64-trace.gz", 3)
    answers = [
        {"type": "trip", "heard_monotonic_ns": each.heard_monotonic_ns, "receiving_ns": each.receiving_ns}
        for each in (trip(1000 * k, 1000 * k + 100 + k) for k in range(200))
    ]
    unstamped = {"type": "trip", "heard_monotonic_ns": 0, "receiving_ns": -1}
    lines = map(json.dumps, [{"type": "ready"}, *answers, unstamped, {"type": "result"}])
    (folder / traced.file).write_text("".join(f"{each}\n" for each in lines))
    text = "".join(
        (switch(0, ("rtdip-sink", 300)), switch(199_200, ("rtdip-echo", 301)), switch(999_999, ("sh", 7)))
    )
    (folder / traced.trace_file).write_bytes(gzip.compress(text.encode()) if trace is None else trace)
    write_messages(folder, dataclasses.replace(messages, traced=dataclasses.replace(traced, **changes)))
    return folder
