# SPDX-License-Identifier: Apache-2.0
"""Runs of one requirement, drawn so that limits, pauses, lateness and U lie close to each other.

The tools' answers are drawn and written in their documented form; the first judge reads them back and makes
the records, with as many replays as its rule asks for. Some runs are ended by a signal before the test of a
second stream, which has a requirement there and stays without a record.
"""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

from reports.daq_replay.attempts import decide_streams
from reports.daq_replay.evidence import load_replay
from reports.daq_replay.machine_use import MACHINE_USE, KnownUse
from reports.daq_replay.verdict import ReplayResults, StreamRequirement, latency_measurement
from reports.record.context import Context
from reports.record.measurement import Conditions, Limit, Outcome, Subject
from reports.run.failed_tests import STOPPED_MARKS, FailedTest
from reports.run.folder import RunFolder
from reports.run.outcome import outcome_of
from tests.reports.sample_run import (
    START_TAI_NS,
    miss_line,
    recv_answer,
    send_answer,
    stream_answer,
    stream_sent,
    write_lines,
)

US = 1000
STREAM = 13
LOAD = 14
"""A stream of the load: replays are repeated for it, too, and it has no record."""
BUDGET_NS = 10_000 * US
PERIOD_NS = 40_000 * US
ALLOWED = 4
"""Replays of a simulated bench that there may be at most, those not counted that the machine explains."""
Json = dict[str, Any]


def make_synthetic_run(results: Path, rng: random.Random) -> tuple[RunFolder, Outcome]:
    """Draw a run, judge it, and return it, as it ends, with the outcome of its stream."""
    simulated = rng.random() < 0.7
    run = RunFolder.create(results, "virtual", "ci", simulated=simulated, commit="0" * 40)
    limit_ns = rng.choice((BUDGET_NS, BUDGET_NS, 8_000 * US, 11_000 * US))
    requirement = StreamRequirement(
        "DAQ-013", Limit(limit_ns, None, "a test"), rng.choice((1, 10, 30)), rng.choice((0, 0, 1))
    )
    of_load = StreamRequirement("stream 14", Limit(BUDGET_NS, None, "the pattern"), n_required=1)
    load_is_late = rng.random() < 0.8
    is_stopped = rng.random() < 0.1
    asked = {STREAM: requirement} | ({LOAD: of_load} if is_stopped else {})
    allowed = ALLOWED if simulated else 1
    temper = rng.choice(("calm", "calm", "late", "mixed"))
    folders: list[Path] = []
    replays: list[ReplayResults] = []
    while True:
        folder = run.evidence_folder("daq_replay", f"attempt-{len(folders) + 1}")
        kind = rng.choice(("calm", "late")) if temper == "mixed" else temper
        write_replay(
            folder,
            rng,
            limit_ns,
            is_late=kind == "late",
            load_is_late=load_is_late and rng.random() < 0.6,
        )
        folders.append(folder)
        replays.append(load_replay(folder).replay())
        decided = decide_streams(asked, replays, allowed)[STREAM]
        load = decide_streams({LOAD: of_load}, replays, allowed)[LOAD]
        if "fail" in (decided.outcome, load.outcome):
            break
        if not decided.open and (not load.open or load.explained):
            break
    for number in decided.recorded_replays:
        names = ("recv.ndjson", "misses.ndjson", "witness.ndjson", MACHINE_USE)
        context = Context(
            run.run_id,
            "Robot.Daq Replay.Budgets.Stream 13",
            Subject("virtual", "linux-rt", "kernel", "two-way", str(STREAM)),
            Conditions("ci", "aligned-12"),
            simulated,
            tuple(run.evidence(each) for name in names if (each := folders[number] / name).exists()),
        )
        judged = replace(decided.judged[number], verdict=decided.recorded(number))
        run.append(latency_measurement(STREAM, requirement, replays[number], judged, context))
    run.close()
    if is_stopped:
        run.update(failed_tests=(FailedTest("", "Stream 14", rng.choice(STOPPED_MARKS)),), interrupted="")
    run.update(outcome=outcome_of(run, finalising=True).outcome)
    return run, decided.verdict.outcome


def write_replay(
    folder: Path, rng: random.Random, limit_ns: int, *, is_late: bool, load_is_late: bool
) -> None:
    """Draw a replay and write what its tools said."""
    expected = rng.choice((12, 40, 40))
    lost = rng.choice((0, 0, 0, 0, 0, 1, 2))
    logged_above_ns = rng.choice((BUDGET_NS * 3 // 4, BUDGET_NS * 3 // 4, BUDGET_NS))
    scheduled = expected - (rng.random() < 0.02)  # by the producer: a plan that it did not read to its end
    sent: list[int] = []
    rows: list[tuple[int, int, int]] = []
    for sequence in range(expected):
        late = rng.choice((0, 20 * US, 150 * US, -100 * US))
        way = rng.randrange(1_000 * US, 5_000 * US)
        if is_late and rng.random() < 0.15:
            late = rng.choice((late, rng.randrange(12_000 * US)))
            way = rng.choice(
                (way, limit_ns + rng.randrange(-1_500 * US, 1_500 * US), rng.randrange(30_000 * US))
            )
        if sequence < scheduled:
            sent.append(late)
        if lost <= sequence < scheduled:
            rows.append((sequence, late, max(way, -late)))
    misses = [_miss(*row) for row in rows if row[1] + row[2] > logged_above_ns]
    dropped = rng.random() < 0.03 and len(misses) > 1
    logged = misses[1:] if dropped else misses
    received = [(late, way) for _, late, way in rows]
    stream = stream_answer(STREAM, 10, PERIOD_NS, BUDGET_NS, logged_above_ns, expected, received)
    load_ns = [2_000 * US] * (expected - 1) + [40_000 * US if load_is_late else 2_000 * US]
    of_load = [(0, way) for way in load_ns]
    load = stream_answer(LOAD, 10, PERIOD_NS, BUDGET_NS, logged_above_ns, expected, of_load)
    if load_is_late:
        logged = [*logged, _miss(expected - 1, 0, load_ns[-1]) | {"stream": LOAD}]
    complete = rng.random() > 0.03
    recv = recv_answer(
        [stream, load],
        [_clock(rng)],
        _steps(rng, 0.03, "local"),
        duration_ms=expected * PERIOD_NS // 10**6,
        complete=complete,
        dropped=int(dropped),
    )
    is_sent = rng.random() > 0.02
    send = send_answer(
        [stream_sent(STREAM, scheduled, sent), stream_sent(LOAD, expected, [0] * expected)],
        _steps(rng, 0.02, "local"),
        complete=is_sent,
    )
    ready = {"type": "ready", "local_tai_ns": START_TAI_NS - 10**9}
    write_lines(folder / "recv.ndjson", ready, recv)
    write_lines(folder / "send-01.ndjson", {"type": "ready"}, send)
    write_lines(folder / "misses.ndjson", *logged)
    write_lines(folder / "witness.ndjson", _witness(rng, misses, expected))
    for tool in ("recv", "send-01", "witness"):
        (folder / f"{tool}.err").touch()
    others_ppm = rng.choice((None, None, None, None, None, None, 0, 50_000, 50_001, 400_000))
    if others_ppm is not None:
        KnownUse(2, 10**9, 3 * 10**8 + 2000 * others_ppm, 3 * 10**8).write(folder)
    (folder / "plan.toml").write_text(
        '[run]\nschema = "benchwright.plan/1"\nphase = "aligned-12"\n'
        '\n[[producer]]\nnumber = 1\nclock = "host"\n'
        f"\n[[stream]]\nid = {STREAM}\nlow_latency = true\n"
        f"\n[[stream]]\nid = {LOAD}\nlow_latency = true\n"
    )


def _miss(sequence: int, late: int, way: int) -> Json:
    return miss_line(STREAM, sequence, START_TAI_NS + sequence * PERIOD_NS, late, way)


def _clock(rng: random.Random) -> Json:
    bound_ns, residual_ns = rng.choice(
        ((84 * US, 21_500), (900 * US, 400 * US), (0, 0), (6_000 * US, 5_000 * US))
    )
    series = [
        [START_TAI_NS + n * 10**9, 40 * US + rng.randrange(-9 * US, 9 * US), bound_ns] for n in range(4)
    ]
    return {
        "name": "host", "exchanges": 610, "kept": rng.choice((61, 61, 61, 61, 61, 0)), "offset_ns": 40 * US,
        "rate_ppb": 0, "bound_ns": bound_ns, "residual_ns": residual_ns, "rtt_min_ns": 2 * bound_ns,
        "rtt_p50_ns": 402_000, "series": series,
    }  # fmt: skip


def _steps(rng: random.Random, share: float, name: str) -> list[Json]:
    if rng.random() >= share:
        return []
    return [{"clock": name, "time_tai_ns": START_TAI_NS + 10**9, "step_ns": rng.randrange(1, 5_000) * US}]


def _witness(rng: random.Random, misses: list[Json], expected: int) -> Json:
    windows: list[list[int]] = []
    for miss in misses:
        if rng.random() < 0.6:
            length_ns = rng.choice(
                (miss["received_minus_scheduled_ns"], rng.randrange(100 * US, 20_000 * US))
            )
            begin = miss["received_local_tai_ns"] + 40 * US - rng.randrange(length_ns + 1_000 * US)
            windows.append([begin, begin + length_ns, rng.randrange(2)])
    for _ in range(rng.randrange(3)):
        begin = START_TAI_NS + rng.randrange(expected * PERIOD_NS)
        windows.append([begin, begin + rng.randrange(100 * US, 9_000 * US), rng.randrange(2)])
    ran = [rng.choice((0, rng.randrange(250 * US), end - begin + 250 * US)) for begin, end, _cpu in windows]
    of_target: Json = rng.choice(({}, {}, {"target_ran_ns": ran}, {"target_ran_ns": None}))
    nobody = [rng.choice((0, rng.randrange(end - begin + 250 * US))) for begin, end, _cpu in windows]
    of_nobody: Json = rng.choice(
        ({}, {"unclaimed_ns": nobody}, {"unclaimed_ns": nobody}, {"unclaimed_ns": None})
    )
    cpus: list[Json] = []
    for cpu in range(2):
        lengths = [end - begin for begin, end, own in windows if own == cpu]
        cpus.append({
            "cpu": cpu, "samples": 6400, "stalls": len(lengths), "stalled_ns": sum(lengths),
            "max_ns": max(lengths, default=0), "steal_ns": 0, "idle_ns": 10**9,
            "utilisation": rng.choice((0.0, 0.25, 0.9)),
        })  # fmt: skip
    return {
        "type": "result", "tool": "bw-traffic witness", "version": "0.1.0", "complete": True, "cpus": cpus,
        "stalled_fraction": 0.0004, "windows": windows, "windows_dropped": 0, "period_ns": 250_000,
        "threshold_ns": 100_000, **of_target, **of_nobody,
        "threads": [{"tid": 7, "ran_ns": 0, "lost": False}] if len(misses) % 3 == 1 else [],
    }  # fmt: skip
