# SPDX-License-Identifier: Apache-2.0
"""A finished run of clocks: steady, stepped, disturbed, behind an asymmetric path, by two-way transfer."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from reports.clock_sync.disturbance import (
    DISTURBANCE,
    Disturbance,
    Event,
    lock_time_measurement,
    step_measurement,
    write_disturbance,
)
from reports.clock_sync.path_shift import path_shift, shift_measurement
from reports.clock_sync.tai_utc import NodeTaiUtc, write_tai_utc
from reports.clock_sync.trial import (
    EVIDENCE_FILES,
    FILTERED,
    SEQUENTIAL,
    WITNESS,
    ClockTrial,
    Lock,
    ServerReplies,
    Timecard,
    TrialFacts,
    TwoWay,
    load_trial,
    write_trial,
)
from reports.clock_sync.two_way_reference import SERVER_FILE, TARGET_FILE, TWO_WAY
from reports.clock_sync.verdict import sync_measurement, witness_measurement
from reports.page.render import render_pages
from reports.record.context import Context
from reports.record.measurement import Conditions, Limit, Measurement, Subject
from reports.run.folder import RunFolder
from reports.run.outcome import outcome_of
from reports.run.selected import SelectedFile, SelectedSuite
from resources.clock_sync.lines import ClockLine
from resources.clock_sync.servo_summary import with_servo
from tests.reports.sample_clock import SECOND_NS, START_TAI_NS
from tests.reports.sample_run import summary
from tests.reports.sample_server_replies import START_MONOTONIC_NS, log_of

VERSION = "0.2.2"
TARGET, OTHER = "linux-rt", "windows"
LIMIT = Limit(200_000, -200_000, "a test")
MS = 1_000_000
SECONDS = 16
SAMPLES = 4
"""Of each interval of a series."""
STEP_NS = 500_000
FORMS = {"chrony": "chrony-measurements", "ptp-software": "ptp4l"}
"""Stack → format of its log."""
LOG = "servo.log"
Json = dict[str, Any]


def make_clock_run(results: Path, seed: int = 1) -> RunFolder:
    """Make a run in which clocks were measured in each way, and judged."""
    run = RunFolder.create(results, "virtual", "nightly", simulated=True, commit="0" * 40)
    run.update(tools={"bw-clock": f"bw-clock {VERSION}", "bw-traffic": f"bw-traffic {VERSION}"})
    rng = random.Random(seed)
    for target in (TARGET, OTHER):
        nodes = [NodeTaiUtc(target, 37), NodeTaiUtc("grandmaster", 0)]
        write_tai_utc(run.evidence_folder("clock_sync", target), nodes)
    for record in (
        *_steady(run, "chrony", rng),
        *_steady(run, "ptp-software", rng),
        *_stepped(run, rng),
        *_disturbed(run, rng),
        _shifted(run, rng),
        _by_two_way(run, rng),
    ):
        run.append(record)
    run.close()
    _ask(run)
    run.update(outcome=outcome_of(run, finalising=True).outcome)
    for name, page in render_pages(run.path).items():
        (run.path / name).write_text(page)
    return run


def _ask(run: RunFolder) -> None:
    """Note what the suites ask, and keep the file that says so."""
    asked: list[SelectedSuite] = []
    for target, clocks in ((TARGET, ("chrony", "ptp-software")), (OTHER, ("timeservice",))):
        items = [
            f'[[requirement]]\nid = "CLK-{clock.upper()}"\nclock = "{clock}"\nupper_ns = {LIMIT.upper}\n'
            f'quantity = "sync_offset"\nstatistic = "max_abs"\nsource = "{LIMIT.source}"\n'
            "lock_within_s = 90\n"
            for clock in clocks
        ]
        file = f"clocks-{target}.toml"
        (run.evidence_folder("requirements") / file).write_text("\n".join(items))
        names = tuple(f"CLK-{clock.upper()}" for clock in clocks)
        asked.append(SelectedSuite(target, "clock_sync/sync_error.robot", (SelectedFile(file, names),)))
    run.update(asked=tuple(asked))


def comparison(rng: random.Random, mean_ns: int = 3_000, read: str = "filtered", **changes: Any) -> Json:
    """Return the `result` of `bw-clock compare`, with every key that it has."""
    is_filtered = read == "filtered"
    rows: list[list[int]] = []
    samples: list[int] = []
    windows = [rng.randint(700, 4_000) for _ in range(SECONDS * 10 * SAMPLES if is_filtered else 0)]
    for number in range(SECONDS * 10):
        offsets = [mean_ns + round(rng.gauss(0, 2_000)) for _ in range(SAMPLES)]
        samples += offsets
        time_ns = START_TAI_NS + number * SECOND_NS // 10
        rows.append([time_ns, SAMPLES, round(sum(offsets) / SAMPLES), min(offsets), max(offsets)])
    clock: Json = {"tai_utc_s": 37, "tai_utc_of_kernel": True}
    discarded = 12 if is_filtered else 0
    answer: Json = {
        "type": "result", "tool": "bw-clock compare", "version": VERSION, "complete": True, "valid": True,
        "invalid_reasons": [], "device": {"name": "realtime", "kind": "realtime", **clock},
        "reference": {
            "name": "card", "kind": "card", "source": "grandmaster", "bound_ns": 397,
            "calibration_bound_ns": 160,
        },
        "read": read, "filter_ns": 20_000 if is_filtered else None, "phc_read": None,
        "pause_max_ns": MS, "step_threshold_ns": 100_000, "gap_ns": SECOND_NS,
        "iterations": len(samples) + discarded, "discarded": discarded,
        "elapsed_ns": SECONDS * SECOND_NS + 150_072, "start_tai_ns": START_TAI_NS,
        "start_monotonic_ns": START_MONOTONIC_NS, "offset": summary(samples), "window": summary(windows),
        "series": {
            "interval_ns": SECOND_NS // 10,
            "columns": ["time_tai_ns", "n", "mean_ns", "min_ns", "max_ns"],
            "rows": rows,
        },
        "steps": [], "steps_dropped": 0, "gaps": [], "gaps_dropped": 0, "reference_bound_ns": 397,
        "device_bound": None, "memory": {"rss_start_bytes": 2_633_728, "rss_end_bytes": 2_895_872},
        "scheduling": {"policy": "fifo", "priority": 10, "note": ""},
    }  # fmt: skip
    return answer | changes


def without_rows(answer: Json, first: int, last: int) -> Json:
    """Leave rows of a comparison out, as where a clock was not read for a while; it says so."""
    rows = answer["series"]["rows"]
    gap = {"from_tai_ns": rows[first - 1][0] + 90 * MS, "to_tai_ns": rows[last][0] + 101 * MS}
    kept = [*rows[:first], *rows[last + 1 :]]
    samples = [value for _, n, mean, low, high in kept for value in (low, high, *[mean] * (n - 2))]
    rows[:] = [
        [time, n, round((low + high + mean * (n - 2)) / n), low, high] for time, n, mean, low, high in kept
    ]
    answer |= {"offset": summary(samples), "gaps": [gap]}
    answer["window"] = summary([900 + number % 700 for number in range(len(samples))])
    answer["iterations"] = len(samples) + answer["discarded"]
    return answer


def _write(folder: Path, facts: TrialFacts, answer: Json, sequential: Json | None = None) -> ClockTrial:
    files = {FILTERED: answer, WITNESS: _witness()} | ({SEQUENTIAL: sequential} if sequential else {})
    for name, result in files.items():
        (folder / name).write_text('{"type":"ready"}\n' + json.dumps(result) + "\n")
        (folder / name).with_suffix(".err").write_text("")
    write_trial(folder, facts)
    return load_trial(folder)


def _facts(clock: str, kind: str, **more: Any) -> TrialFacts:
    card = Timecard("card", 25, "memory shared with the host")
    facts = TrialFacts(clock, kind, 1, "idle", "none", None, None, None, card)
    return replace(facts, **more)


def _witness() -> Json:
    begin_ns = START_TAI_NS + 7 * SECOND_NS
    windows = [[begin_ns, begin_ns + 3 * MS, 0], [begin_ns + SECOND_NS, begin_ns + SECOND_NS + 2 * MS, 0]]
    cpu = {"cpu": 0, "samples": 9_000, "stalls": 2, "stalled_ns": 5 * MS, "max_ns": 3 * MS, "steal_ns": 0}
    return {
        "type": "result", "tool": "bw-traffic witness", "version": VERSION, "complete": True,
        "elapsed_ns": SECONDS * SECOND_NS, "period_ns": 500_000, "threshold_ns": 2 * MS,
        "cpus": [cpu | {"idle_ns": None, "utilisation": None}], "threads": [], "stalled_ns": 5 * MS,
        "stalled_fraction": 5 * MS / (SECONDS * SECOND_NS), "windows": windows, "windows_dropped": 0,
        "series_dropped": None,
    }  # fmt: skip


def _context(run: RunFolder, trials: Sequence[ClockTrial], *more: str) -> Context:
    facts = trials[-1].facts
    files = [trial.folder / name for trial in trials for name in (*EVIDENCE_FILES, *more)]
    target = OTHER if facts.timecard.clock == TWO_WAY else TARGET
    return Context(
        run.run_id,
        "a test",
        Subject("virtual", target, clock=facts.clock),
        Conditions("nightly", f"{facts.kind} {facts.interval_s:g} s", facts.load, facts.impairment),
        True,
        tuple(run.evidence(file) for file in files if file.exists()),
    )


def _steady(run: RunFolder, clock: str, rng: random.Random) -> list[Measurement]:
    """A clock that has locked, with its servo's log, read in both ways, and two-way transfer beside."""
    folder = run.evidence_folder("clock_sync", TARGET, clock)
    form = FORMS[clock]
    (folder / LOG).write_text(_log(form, rng))
    facts = _facts(clock, "sync", lock=Lock(12.5, "a rule", 1.1), hearing=ServerReplies(LOG, form))
    facts = replace(facts, two_way=_two_way(folder / "two-way", rng))
    answer = comparison(rng)
    if clock == "ptp-software":
        answer = without_rows(answer, 60, 75)
    trial = with_servo(_write(folder, facts, answer, comparison(rng, 3_400, "sequential")), LOG, form)
    name = f"CLK-{clock.upper()}"
    context = _context(run, [trial])
    lock = trial.facts.lock
    assert lock is not None
    witnesses = witness_measurement(trial, "BENCH-CLOCK-WITNESSES", context)
    assert witnesses is not None
    return [
        sync_measurement(trial, name, LIMIT, 99, context),
        lock_time_measurement([lock], name, Limit(90, None, "a test"), 1, context),
        witnesses,
    ]


def _log(form: str, rng: random.Random) -> str:
    """Return a servo's log that begins before the trial and ends after it."""
    lines = log_of(form, [float(second) for second in range(-5, SECONDS + 3)]).splitlines()
    for number, line in enumerate(lines):
        offset_ns = rng.randint(-9_000, 9_000)
        for said, own in (("-9.131e-05", f"{offset_ns / 1e9:.3e}"), ("   -25", f"{offset_ns:6}")):
            line = line.replace(said, own)
        lines[number] = line.replace("      9012", f"{9_000 + number % 7 * 40:10}")
    return "\n".join([*lines, ""])


def _two_way(folder: Path, rng: random.Random) -> TwoWay:
    """Write what both clocks answered, and return what `measure_trial` makes of it."""
    folder.mkdir()
    lines: list[ClockLine] = []
    for number, name in enumerate((TARGET, "grandmaster")):
        at_ns = START_TAI_NS + 3 * SECOND_NS + number * 2_640_347
        line = ClockLine(
            name, at_ns, 12_345_678 - 4_000 * number, rng.randint(-9_000, 9_000), 70_000 + number
        )
        lines.append(line)
        answer = {"type": "result", "tool": "bw-traffic offset", "version": VERSION, "at_local_tai_ns": at_ns}
        answer |= {"offset_ns": line.offset_ns, "rate_ppb": line.rate_ppb, "bound_ns": line.bound_ns}
        (folder / f"offset-{name}.ndjson").write_text(json.dumps(answer) + "\n")
        (folder / f"offset-serve-{name}.ndjson").write_text('{"type":"ready"}\n')
        for stem in (f"offset-{name}", f"offset-serve-{name}"):
            (folder / f"{stem}.err").write_text("")
    own, server = lines
    end_ns = max(each.at_reference_tai_ns for each in lines)
    begin_ns = end_ns - 2_500 * MS
    middle_ns = (begin_ns + end_ns) // 2
    return TwoWay(
        own.local_ns(middle_ns) - server.local_ns(middle_ns),
        own.bound_ns + server.bound_ns,
        server.local_ns(begin_ns),
        server.local_ns(end_ns),
    )


def _stepped(run: RunFolder, rng: random.Random) -> list[Measurement]:
    folder = run.evidence_folder("clock_sync", TARGET, "chrony-step")
    step = {"time_tai_ns": START_TAI_NS + 2 * SECOND_NS, "step_ns": STEP_NS + 1_204}
    event = Event("clock put ahead by 500 us", 1.0, Lock(5.8, "a rule", 1.4), "")
    write_disturbance(folder, Disturbance("chrony", "step", (event,)))
    trial = _write(folder, _facts("chrony", "step"), comparison(rng, 90_000, steps=[step]))
    context = _context(run, [trial], DISTURBANCE)
    locks = [each.lock for each in (event,) if each.lock is not None]
    return [
        step_measurement(trial, STEP_NS, LIMIT, 99, context),
        lock_time_measurement(locks, "CLK-CHRONY", Limit(90, None, "a test"), 1, context),
    ]


def _disturbed(run: RunFolder, rng: random.Random) -> list[Measurement]:
    folder = run.evidence_folder("clock_sync", TARGET, "chrony-oscillator")
    done = Disturbance(
        "chrony",
        "oscillator",
        (
            Event("oscillator +200 ppm", 1.0, Lock(9.6, "a rule", 2.4), "servo before: -27.9 ppm"),
            Event("oscillator +200 ppm, taken back", 10.6, Lock(8.6, "a rule", 1.6), ""),
        ),
    )
    write_disturbance(folder, done)
    trial = _write(folder, _facts("chrony", "oscillator"), comparison(rng))
    context = _context(run, [trial], DISTURBANCE)
    return [
        sync_measurement(trial, "CLK-CHRONY", LIMIT, 99, context),
        lock_time_measurement(done.locks, "CLK-CHRONY", Limit(90, None, "a test"), 2, context),
    ]


def _shifted(run: RunFolder, rng: random.Random) -> Measurement:
    pairs: list[tuple[ClockTrial, ClockTrial]] = []
    for number in (1, 2, 3):
        found: list[ClockTrial] = []
        for delay_us in (0, 50):
            folder = run.evidence_folder(
                "clock_sync", TARGET, "chrony-asymmetry", f"pair-{number}-{delay_us}-us"
            )
            (folder / LOG).write_text(_log(FORMS["chrony"], rng))
            facts = _facts("chrony", "asymmetry", hearing=ServerReplies(LOG, FORMS["chrony"]))
            asymmetry_ns = delay_us * 1_000 + rng.randint(-900, 900)
            facts = replace(facts, impairment=f"{delay_us} us one way", asymmetry_ns=asymmetry_ns)
            answer = comparison(rng, 3_000 - asymmetry_ns // 2 + rng.randint(-400, 400))
            found.append(with_servo(_write(folder, facts, answer), LOG, FORMS["chrony"]))
        pairs.append((found[0], found[1]))
    context = _context(run, [trial for pair in pairs for trial in pair])
    return shift_measurement(path_shift(pairs, 50_000), context)


def _by_two_way(run: RunFolder, rng: random.Random) -> Measurement:
    """A clock without a timecard, beside its time server."""
    folder = run.evidence_folder("clock_sync", OTHER, "timeservice")
    for name, offset_ns, rate_ppb in ((TARGET_FILE, 72_000, 12_345), (SERVER_FILE, 70_000, 9_876)):
        (folder / name).write_text(json.dumps(_exchanges(rng, offset_ns, rate_ppb)) + "\n")
        (folder / name).with_suffix(".err").write_text("")
    card = Timecard(TWO_WAY, 0, "the control network, by two-way transfer")
    write_trial(folder, replace(_facts("timeservice", "sync"), timecard=card))
    trial = load_trial(folder)
    return sync_measurement(trial, "CLK-TIMESERVICE", LIMIT, 99, _context(run, [trial]))


def _exchanges(rng: random.Random, offset_ns: int, rate_ppb: int) -> Json:
    """Return an answer of `bw-traffic offset`, with every key that it has."""
    times_ns = [START_TAI_NS + number * 50 * MS + rng.randint(0, 40_000) for number in range(SECONDS * 20)]
    series = [
        [
            at_ns,
            offset_ns + (at_ns - times_ns[-1]) * rate_ppb // 10**9 + rng.randint(-900, 900),
            9_000 + k % 900,
        ]
        for k, at_ns in enumerate(times_ns)
    ]
    series[57][2] = 90_000
    return {
        "type": "result", "tool": "bw-traffic offset", "version": VERSION, "peer": "10.78.0.110:19999",
        "complete": True, "valid": True, "invalid_reasons": [], "exchanges": 8 * len(series),
        "kept": len(series), "invalid": 0, "lost": 0, "offset_ns": offset_ns, "rate_ppb": rate_ppb,
        "bound_ns": 9_000, "bound_growth_ppb": 321, "residual_ns": 700, "rtt_min_ns": 18_000,
        "rtt_p50_ns": 18_900, "at_local_tai_ns": times_ns[-1] + 9_000, "tai_utc_s": 37, "series": series,
        "clock_steps": [], "scheduling": {"policy": "fifo", "priority": 50, "note": ""},
    }  # fmt: skip
