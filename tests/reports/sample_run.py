# SPDX-License-Identifier: Apache-2.0
"""A realistic run folder for tests: answers of the native tools in their documented form, from a fixed seed.

The samples are drawn, the answers are written, and everything after that is the real way: evidence is read
back, streams are judged, records appended.
"""

from __future__ import annotations

import json
import random
import re
import tomllib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reports.daq_replay.evidence import load_replay
from reports.daq_replay.known_delay import judge_known_delay
from reports.daq_replay.verdict import StreamRequirement, judge_latency, latency_measurement
from reports.record.context import Context
from reports.record.measurement import Conditions, Limit, Outcome, Subject, Uncertainty, UncertaintyPart
from reports.record.sampling import required_samples
from reports.run.folder import RunFolder
from reports.run.manifest import TestCounts
from reports.run.selected import SelectedFile, with_selected
from reports.run.tally import overall

# Table 1 of the DAQ paper: size in bytes, period and budget in ms of message types 0..3 of producers 1..12.
TABLE_1 = {
    1: ((500, 200, 100), (500, 200, 100), (1000, 200, 100), (10, 200, 10)),
    2: ((320000, 80, 40), (640000, 80, 40), (4000, 80, 40), (100, 10, 10)),
    3: ((750, 100, 50), (1000, 100, 50), (2500, 100, 50), (100, 100, 10)),
    4: ((8000, 100, 50), (8000, 100, 50), (3200, 100, 50), (100, 100, 10)),
    5: ((4000, 100, 50), (4000, 100, 50), (1600, 100, 50), (100, 100, 10)),
    6: ((20000, 100, 50), (20000, 100, 50), (4000, 100, 50), (100, 100, 10)),
    7: ((10000, 100, 50), (10000, 100, 50), (2000, 100, 50), (100, 100, 10)),
    8: ((200, 250, 125), (200, 250, 125), (400, 250, 125), (10, 250, 10)),
    9: ((400, 500, 250), (400, 500, 250), (800, 500, 250), (10, 500, 10)),
    10: ((400, 100, 50), (400, 100, 50), (800, 100, 50), (100, 100, 10)),
    11: ((250, 100, 50), (250, 100, 50), (500, 100, 50), (100, 100, 10)),
    12: ((150000, 100, 50), (150000, 100, 50), (4000, 100, 50), (100, 100, 10)),
}
START_TAI_NS = 1_795_000_000_000_000_000
DURATION_MS = 60_000
GUEST_PRODUCER = 12
LOW_LATENCY_TYPE = 3
ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = tomllib.loads((ROOT / "robot" / "daq_replay" / "requirements" / "daq12.toml").read_text())[
    "requirement"
]
SOURCES: dict[str, str] = {item["id"]: item["source"] for item in REQUIREMENTS}
CLOCKS_TOML = """[requirements]
schema = "benchwright.requirements/2"
name = "clocks"

[[requirement]]
id = "CLK-CHRONY"
clock = "chrony"
quantity = "sync_offset"
statistic = "max_abs"
upper_ns = 100000
lock_within_s = 90
source = "paper on control loops, 4.5.1"
"""


@dataclass(frozen=True)
class Disturbance:
    """What goes wrong in a sample run; times in ns.

    Attributes:
        path_delay_ns: Delay on the path, by stream id: the network's or the target's fault.
        generator_delay_ns: Lateness of the producer, by stream id: the bench's fault.
        lost: Messages that do not arrive, by stream id.
        stalled: Whether the bench stalls while delayed messages are under way.
        stall_ns: How long each time.
        stalled_fraction: Share of stalled time that the witness reports.
        clock_step_ns: Step of the consumer's clock.
        complete: Whether the consumer came to its end.
        outage_ns: Begin and end of a time since the start in which nothing arrives; all comes at its end.
    """

    path_delay_ns: dict[int, int] | None = None
    generator_delay_ns: dict[int, int] | None = None
    lost: dict[int, int] | None = None
    stalled: bool = False
    stall_ns: int = 8_000_000
    stalled_fraction: float = 0.0004
    clock_step_ns: int = 0
    complete: bool = True
    outage_ns: tuple[int, int] = (0, 0)


def summary(samples_ns: list[int]) -> dict[str, Any]:
    """Return samples as the summary of docs/native-tools.md, in buckets of at most 0.1 %."""
    keys = ("min_ns", "max_ns", "mean_ns", "stddev_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns")
    if not samples_ns:
        return {"n": 0, **dict.fromkeys(keys), "overflow": 0, "buckets": []}
    ordered = sorted(samples_ns)
    n = len(ordered)
    mean = sum(ordered) / n
    counts: dict[tuple[int, int], int] = {}
    for value in ordered:
        shift = max(0, abs(value).bit_length() - 11)
        smallest, width = abs(value) >> shift << shift, 1 << shift
        bucket = (smallest if value >= 0 else -(smallest + width - 1), width)
        counts[bucket] = counts.get(bucket, 0) + 1
    ranks = [ordered[min(n - 1, int(q * n))] for q in (0.5, 0.9, 0.99, 0.999)]
    spread = (sum((v - mean) ** 2 for v in ordered) / n) ** 0.5
    figures = [ordered[0], ordered[-1], mean, spread, *ranks]
    buckets = [[low, width, count] for (low, width), count in sorted(counts.items())]
    return {"n": n, **dict(zip(keys, figures, strict=True)), "overflow": 0, "buckets": buckets}


@dataclass
class _Stream:
    """One stream's drawn samples on the way into the tools' answers."""

    record: dict[str, Any]
    send: dict[str, Any]
    misses: list[dict[str, Any]]
    received: list[tuple[int, int]]
    """When each message was received, in ns since the start, and its latency in ns."""


def _coarse(value: float) -> int:
    """Round to four bits: distributions of few buckets, of which each test reads little text."""
    shift = max(0, int(value).bit_length() - 4)
    return int(value) >> shift << shift


def _receive_stack_ns(latency_ns: int) -> int:
    """Return what of the way was between the kernel's stamp and the read."""
    return 40_000 + latency_ns // 40


def _draw(stream_id: int, disturbance: Disturbance, rng: random.Random) -> _Stream:
    producer, kind = divmod(stream_id, 10)
    size_bytes, period_ms, budget_ms = TABLE_1[producer][kind]
    slots = DURATION_MS // period_ms
    lost = (disturbance.lost or {}).get(stream_id, 0)
    wire_ns = size_bytes * 8 + (6_700_000 if kind != 3 else 0) * (producer in (2, 6, 12))
    path_ns = (disturbance.path_delay_ns or {}).get(stream_id, 0)
    late_ns = (disturbance.generator_delay_ns or {}).get(stream_id, 0)
    sent: list[int] = []
    of_received: list[int] = []
    under_way: list[int] = []
    misses: list[dict[str, Any]] = []
    received: list[tuple[int, int]] = []
    for sequence in range(slots):
        lateness = 3_000 + _coarse(rng.lognormvariate(9.6, 0.7)) + late_ns * (sequence % 50 == 7)
        latency = (
            wire_ns + 180_000 + _coarse(rng.lognormvariate(12.2, 0.55)) + path_ns * (sequence % 50 == 11)
        )
        instant = sequence * period_ms * 1_000_000 + lateness
        if disturbance.outage_ns[0] <= instant < disturbance.outage_ns[1]:
            latency += disturbance.outage_ns[1] - instant
        sent.append(lateness)
        if sequence < lost:
            continue
        of_received.append(lateness)
        under_way.append(latency)
        received.append((sequence * period_ms * 1_000_000 + latency + lateness, latency + lateness))
        if latency + lateness > budget_ms * 750_000:
            slot_tai_ns = START_TAI_NS + sequence * period_ms * 1_000_000
            misses.append(
                miss_line(stream_id, sequence, slot_tai_ns, lateness, latency, _receive_stack_ns(latency))
            )
    record = stream_answer(
        stream_id, size_bytes, period_ms * 1_000_000, budget_ms * 1_000_000, budget_ms * 750_000,
        slots, list(zip(of_received, under_way, strict=True)), [_receive_stack_ns(v) for v in under_way],
    )  # fmt: skip
    send = stream_sent(stream_id, slots, sent) | {"blocked_writes": 3 if size_bytes > 100_000 else 0}
    return _Stream(record, send, misses, received)


def miss_line(
    stream_id: int, sequence: int, slot_tai_ns: int, lateness_ns: int, way_ns: int, stack_ns: int = 0
) -> dict[str, Any]:
    """Return a message's line in the log of misses."""
    received_tai_ns = slot_tai_ns + lateness_ns + way_ns
    return {
        "stream": stream_id, "sequence": sequence, "scheduled_tai_ns": slot_tai_ns,
        "lateness_ns": lateness_ns, "received_minus_scheduled_ns": lateness_ns + way_ns,
        "received_minus_sent_ns": way_ns, "received_local_tai_ns": received_tai_ns,
        "kernel_stamp_local_tai_ns": received_tai_ns - stack_ns,
    }  # fmt: skip


def stream_answer(
    stream_id: int, size_bytes: int, period_ns: int, budget_ns: int, logged_above_ns: int,
    expected: int, received: Sequence[tuple[int, int]], stack_ns: Sequence[int] = (),
) -> dict[str, Any]:  # fmt: skip
    """Return what the consumer says of a stream; of each message received lateness and way, in ns."""
    producer, kind = divmod(stream_id, 10)
    whole = [lateness_ns + way_ns for lateness_ns, way_ns in received]
    ways = [way_ns for _, way_ns in received]
    return {
        "id": stream_id, "producer": producer, "message_type": kind,
        "transport": "udp" if kind == 2 else "tcp", "size_bytes": size_bytes, "period_ns": period_ns,
        "budget_ns": budget_ns, "logged_above_ns": logged_above_ns, "expected": expected,
        "received": len(received), "lost": expected - len(received), "duplicates": 0, "reordered": 0,
        "invalid_samples": 0, "connections": int(kind != 2),
        "misses": sum(each > budget_ns for each in whole),
        "misses_sent": sum(way_ns > budget_ns for way_ns in ways), "received_minus_scheduled": summary(whole),
        "received_minus_sent": summary(ways),
        "sent_minus_scheduled": summary([lateness_ns for lateness_ns, _ in received]),
        "receive_stack": summary([*stack_ns]),
    }  # fmt: skip


def stream_sent(stream_id: int, scheduled: int, lateness_ns: list[int]) -> dict[str, Any]:
    """Return what a producer says of a stream, all of which it has sent."""
    return {
        "id": stream_id, "producer": stream_id // 10, "scheduled": scheduled, "sent": scheduled,
        "late_slots": 0, "reconnects": 0, "blocked_writes": 0, "unsent": 0,
        "sent_minus_scheduled": summary(lateness_ns), "transmit_stack": summary([]),
    }  # fmt: skip


def _clock(name: str, offset_ns: int, rate_ppb: int, rng: random.Random) -> dict[str, Any]:
    """Return a producers' clock whose line drifts as its rate says, with a little noise."""
    series: list[list[int]] = []
    for second in range(DURATION_MS // 1000 + 1):
        noise_ns = int(rng.gauss(0, 9_000))
        series.append(
            [START_TAI_NS + second * 10**9, offset_ns + second * rate_ppb + noise_ns, 81_000 + noise_ns // 3]
        )
    clock: dict[str, Any] = {"name": name, "exchanges": 610, "kept": 61, "offset_ns": offset_ns}
    clock |= {"rate_ppb": rate_ppb, "bound_ns": 84_000, "residual_ns": 21_500}
    return clock | {"rtt_min_ns": 161_000, "rtt_p50_ns": 402_000, "series": series}


def recv_answer(
    streams: Sequence[dict[str, Any]],
    clocks: Sequence[dict[str, Any]],
    steps: Sequence[dict[str, Any]] = (),
    *,
    duration_ms: int = DURATION_MS,
    complete: bool = True,
    dropped: int = 0,
) -> dict[str, Any]:
    """Return the consumer's `result` object."""
    return {
        "type": "result", "tool": "bw-traffic recv", "version": "0.1.0", "complete": complete,
        "valid": complete, "invalid_reasons": [] if complete else ["ended by SIGTERM"],
        "nonce": "0123456789abcdef", "phase": "aligned-12", "scale": 1, "warmup_ms": 6000,
        "duration_ms": duration_ms, "correction": "two-way", "start_tai_ns": START_TAI_NS,
        "end_tai_ns": START_TAI_NS + duration_ms * 10**6, "tai_utc_s": 37,
        "streams": streams, "clocks": clocks, "clock_steps": steps,
        "hostile": {"foreign_connections": 0, "bad_hello": 0, "bad_check": 0, "truncated": 0, "oversized": 0,
                    "stale": 0},
        "recorder": {"miss_log_dropped": dropped, "message_log_dropped": 0},
        "memory": {"rss_start_bytes": 3_100_000, "rss_end_bytes": 3_180_000},
        "scheduling": {"policy": "fifo", "priority": 50, "note": ""},
    }  # fmt: skip


def send_answer(
    streams: Sequence[dict[str, Any]], steps: Sequence[dict[str, Any]] = (), *, complete: bool = True
) -> dict[str, Any]:
    """Return a producer's `result` object."""
    return {
        "type": "result", "tool": "bw-traffic send", "complete": complete, "clock_steps": steps,
        "streams": streams, "scheduling": {"policy": "fifo", "priority": 50, "note": ""},
    }  # fmt: skip


def progress_answers(streams: list[_Stream]) -> list[dict[str, Any]]:
    """Return what the consumer tells every ten seconds; it began a second before the counted time."""
    lines: list[dict[str, Any]] = []
    for second in range(10, DURATION_MS // 1000, 10):
        rows: list[list[int]] = []
        for stream in streams:
            so_far = [latency for after_ns, latency in stream.received if after_ns <= second * 10**9]
            missed = sum(latency > stream.record["budget_ns"] for latency in so_far)
            rows.append(
                [stream.record["id"], len(so_far), stream.record["lost"], max(so_far, default=0), missed]
            )
        lines.append({"type": "progress", "elapsed_ms": (second + 1) * 1000, "streams": rows})
    return lines


def witness_answer(streams: list[_Stream], disturbance: Disturbance) -> dict[str, Any]:
    """Return the witness's `result` object; stalls lie over the misses where the disturbance says so."""
    misses = [miss for stream in streams for miss in stream.misses] if disturbance.stalled else []
    windows = [
        [m["received_local_tai_ns"] + 40_000 - m["received_minus_scheduled_ns"] + 1_000_000, 0, 0]
        for m in misses
    ]
    windows = [[start, start + disturbance.stall_ns, cpu] for start, _, cpu in windows]
    cpu = {
        "samples": 600_000,
        "stalls": len(windows),
        "stalled_ns": disturbance.stall_ns * len(windows),
        "max_ns": disturbance.stall_ns if windows else 0,
        "steal_ns": 0,
        "idle_ns": 45_000_000_000,
        "utilisation": 0.3,
    }
    return {
        "type": "result", "tool": "bw-traffic witness", "version": "0.1.0", "complete": True,
        "cpus": [{"cpu": number, **cpu} for number in (0, 1)],
        "stalled_fraction": disturbance.stalled_fraction, "windows": windows, "windows_dropped": 0,
        "period_ns": 250_000, "threshold_ns": 100_000,
    }  # fmt: skip


def plan_text() -> str:
    """Return the tables of a plan that verdicts read."""
    lines = ["[run]", 'schema = "benchwright.plan/1"', 'phase = "aligned-12"']
    for producer in TABLE_1:
        clock = "guest" if producer == GUEST_PRODUCER else "host"
        lines += ["", "[[producer]]", f"number = {producer}", f'clock = "{clock}"']
    for producer in TABLE_1:
        for kind in range(4):
            low_latency = str(kind == LOW_LATENCY_TYPE).lower()
            lines += ["", "[[stream]]", f"id = {10 * producer + kind}", f"low_latency = {low_latency}"]
    return "\n".join(lines) + "\n"


_drawn: dict[tuple[str, int], dict[str, str]] = {}


def write_evidence(folder: Path, disturbance: Disturbance, seed: int) -> None:
    """Write the evidence of one replay into a folder; the same draw is made only once a process."""
    key = (repr(disturbance), seed)
    if key not in _drawn:
        _draw_evidence(folder, disturbance, seed)
        _drawn[key] = {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}
    for name, text in _drawn[key].items():
        (folder / name).write_text(text)


def _draw_evidence(folder: Path, disturbance: Disturbance, seed: int) -> None:
    rng = random.Random(seed)
    streams = [_draw(10 * producer + kind, disturbance, rng) for producer in TABLE_1 for kind in range(4)]
    ready = {"type": "ready", "local_tai_ns": START_TAI_NS - 10**9}
    clocks = [_clock("host", 40_000, 0, rng), _clock("guest", -3_200_000_000, 100_000, rng)]
    step = {"clock": "local", "time_tai_ns": START_TAI_NS + 30 * 10**9, "step_ns": disturbance.clock_step_ns}
    steps = [step] if disturbance.clock_step_ns else []
    records = [stream.record for stream in streams]
    answer = recv_answer(records, clocks, steps, complete=disturbance.complete)
    write_lines(folder / "recv.ndjson", ready, *progress_answers(streams), answer)
    senders = {"01": [s for s in streams if s.send["producer"] != GUEST_PRODUCER]}
    senders["12"] = [s for s in streams if s.send["producer"] == GUEST_PRODUCER]
    for name, mine in senders.items():
        write_lines(folder / f"send-{name}.ndjson", {"type": "ready"}, send_answer([s.send for s in mine]))
    write_lines(folder / "misses.ndjson", *(miss for stream in streams for miss in stream.misses))
    write_lines(folder / "witness.ndjson", witness_answer(streams, disturbance))
    (folder / "plan.toml").write_text(plan_text())
    parts = [
        UncertaintyPart("clock_offset", "bound", 84_000),
        UncertaintyPart("mean_of_samples", "standard", 11_000),
    ]
    known = judge_known_delay((5,), 5_000_000, 5_031_000, 200, Uncertainty.from_parts(parts))
    (folder / "known_delay.json").write_text(known.to_text())


def write_lines(path: Path, *objects: dict[str, Any]) -> None:
    """Write objects, one a line."""
    path.write_text("".join(json.dumps(item) + "\n" for item in objects))


def requirement_of(stream_id: int) -> StreamRequirement:
    """Return the requirement of a stream of Table 1."""
    budget_ms = TABLE_1[stream_id // 10][stream_id % 10][2]
    name = f"DAQ-{stream_id:03d}"
    limit = Limit(budget_ms * 1_000_000, None, SOURCES[name])
    return StreamRequirement(name, limit, required_samples(0.03))


def add_attempt(
    run: RunFolder,
    number: int,
    disturbance: Disturbance,
    seed: int,
    *,
    simulated: bool,
    target: str = "",
    producers: Collection[int] = tuple(TABLE_1),
    stack: str = "",
) -> Outcome:
    """Write the evidence of one attempt, judge its streams, append the records; return the outcome.

    Args:
        run: The run.
        number: The attempt's.
        disturbance: What goes wrong.
        seed: Of the draw.
        simulated: What the records say of the bench.
        target: One of several; empty: the only one, with its evidence in the place of older runs.
        producers: Whose streams are judged.
        stack: One of several network stacks of the target; empty: the only one.
    """
    place = "/".join(part for part in ("daq_replay", target, stack) if part)
    folder = run.evidence_folder(*place.split("/"), f"attempt-{number}")
    write_evidence(folder, disturbance, seed)
    replay = load_replay(folder).replay()
    files = ("recv.ndjson", "misses.ndjson", "witness.ndjson")
    evidence = tuple(run.evidence(folder / name) for name in files)
    records = [
        latency_measurement(
            stream.id,
            requirement_of(stream.id),
            replay,
            judge_latency(stream.id, requirement_of(stream.id), replay),
            Context(
                run.run_id,
                f"Robot.Daq Replay.Budgets.Stream {stream.id}",
                Subject("virtual", target or "linux-rt", stack or "kernel", "two-way", str(stream.id)),
                Conditions("ci", "aligned-12"),
                simulated,
                evidence,
            ),
        )
        for stream in replay.recv.streams
        if stream.producer in producers
    ]
    for record in records:
        run.append(record)
    outcome = overall(records)
    run.add_attempt(place, outcome, next((r.reason for r in records if r.outcome == outcome), ""))
    return outcome


def ask(run: RunFolder, target: str, suite: str, file: Path | None = None) -> None:
    """Note that a suite asks all of a requirements file of a target; None: it never came so far."""
    more = SelectedFile(file.name, tuple(re.findall(r'(?m)^id = "(.*)"', file.read_text()))) if file else None
    run.update(asked=with_selected(run.manifest.asked or (), target, suite, more))


EMBEDDED_PRODUCERS = (1, 3)
"""Producers that the embedded target of `make_run_of_targets` is asked to take."""


def make_run_of_targets(results: Path, *, simulated: bool = True, close: bool = True) -> RunFolder:
    """Make a run with three targets.

    `linux-rt` passes, but stream 11 lies far nearer to its limit than the others; `windows` fails stream 33
    and has no record of producer 12; `embedded` takes two producers, one stream of which it has no record of,
    and is asked for no clock. What the clocks' suites ask of the other two nobody has measured.
    """
    run = RunFolder.create(results, "virtual", "ci", simulated=simulated, commit="0" * 40)
    run.update(host={"hostname": "bench", "cpus": 2}, tools={"bw-traffic": "0.1.0"})
    kept = run.evidence_folder("requirements")
    whole = (ROOT / "robot" / "daq_replay" / "requirements" / "daq12.toml").read_text()
    head, *each = whole.split("[[requirement]]")
    (kept / "daq12.toml").write_text(whole)
    own = [text for text in each if int(text.split("DAQ-")[1][:3]) // 10 in EMBEDDED_PRODUCERS]
    (kept / "daq2.toml").write_text("[[requirement]]".join([head.replace('"daq12"', '"daq2"'), *own]))
    (kept / "clocks.toml").write_text(CLOCKS_TOML)
    for target, file in (("linux-rt", "daq12.toml"), ("windows", "daq12.toml"), ("embedded", "daq2.toml")):
        ask(run, target, "daq_replay", kept / file)
        run.update(target={target: {"hostname": f"{target}-host", "kernel": {"release": f"6.12-{target}"}}})
    ask(run, "linux-rt", "clock_sync", kept / "clocks.toml")
    ask(run, "windows", "clock_sync")
    every = range(10, 130)
    near = Disturbance(path_delay_ns={11: 94_000_000}, generator_delay_ns=dict.fromkeys(every, 60_000))
    late = Disturbance(path_delay_ns={33: 15_000_000})
    add_attempt(run, 1, near, 2, simulated=simulated, target="linux-rt")
    without_12 = tuple(producer for producer in TABLE_1 if producer != GUEST_PRODUCER)
    add_attempt(run, 1, late, 3, simulated=simulated, target="windows", producers=without_12)
    slow = Disturbance(generator_delay_ns=dict.fromkeys(every, 120_000))
    add_attempt(run, 1, slow, 4, simulated=simulated, target="embedded", producers=(1,))
    if close:
        run.close()
    return run


def make_run(
    results: Path, *disturbances: Disturbance, seed: int = 1, simulated: bool = True, close: bool = True
) -> RunFolder:
    """Make a run folder with one attempt for each disturbance (default: one undisturbed attempt)."""
    run = RunFolder.create(results, "virtual", "ci", simulated=simulated, commit="0" * 40)
    run.update(
        host={"hostname": "bench", "system": "Linux 6.18", "cpus": 2, "python": "3.11.7"},
        target={"kernel": "6.12.57-rt", "preempt_rt": True, "nic": {"driver": "virtio_net", "queues": 1}},
        tools={"bw-traffic": "0.1.0", "robotframework": "7.5", "qemu": "10.0"},
    )
    for number, disturbance in enumerate(disturbances or (Disturbance(),), start=1):
        add_attempt(run, number, disturbance, seed + number, simulated=simulated)
    counts = run.records().measurements
    passed = sum(record.outcome == "pass" for record in counts)
    run.update(tests=TestCounts(passed=passed, failed=len(counts) - passed))
    if close:
        run.close()
    return run
