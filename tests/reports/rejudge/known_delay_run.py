# SPDX-License-Identifier: Apache-2.0
"""A known-delay check as the bench leaves it: messages, sections, answer, and what the first judge found."""

from __future__ import annotations

import json
import random
from pathlib import Path

from reports.page.render import render_pages
from reports.record.context import Context
from reports.record.measurement import Conditions, Measurement, Subject
from reports.run.folder import RunFolder
from reports.run.manifest import TestCounts
from reports.run.outcome import outcome_of
from resources.daq_replay.known_delay import SECTIONS, SECTIONS_FILE, compare, known_delay_record
from resources.daq_replay.replay import ReplayAnswers
from tests.reports.sample_run import START_TAI_NS, make_run, write_lines

MS = 1_000_000
DELAY_NS = 5 * MS
PRODUCER = 3
PERIOD_NS = 20 * MS
MESSAGES = 151
"""Of a section; as many come while the delay is changed."""


def make_checked_run(
    results: Path, seed: int = 1, *, seen: bool = True, found_ns: int = DELAY_NS
) -> RunFolder:
    """Make a run with a known-delay check, before its attempt.

    Args:
        results: Folder of runs.
        seed: Of the latencies.
        seen: Captures have seen the delay; else it was set alone.
        found_ns: What the messages show.
    """
    run = make_run(results, close=False)
    attempt = run.path / "evidence" / "daq_replay" / "attempt-1"
    run.append(add_known_delay(run, attempt, random.Random(seed), seen=seen, found_ns=found_ns))
    for answer in attempt.rglob("*.ndjson"):
        if answer.name != "misses.ndjson":
            answer.with_suffix(".err").touch()
    run.update(tests=TestCounts())  # there is no output.xml that could tell of them
    run.close()
    run.update(outcome=outcome_of(run, finalising=True).outcome)
    for name, page in render_pages(run.path).items():
        (run.path / name).write_text(page)
    return run


def add_known_delay(
    run: RunFolder, attempt: Path, rng: random.Random, *, seen: bool = True, found_ns: int = DELAY_NS
) -> Measurement:
    """Write the evidence of a check beside that of an attempt, and return its record."""
    folder = attempt / "known_delay"
    folder.mkdir()
    answer = json.loads((attempt / "recv.ndjson").read_text().splitlines()[-1])
    answer["streams"] = [each for each in answer["streams"] if each["producer"] == PRODUCER]
    write_lines(folder / "recv.ndjson", answer)
    rows = ["stream,sequence,scheduled_tai_ns,lateness_ns,received_minus_scheduled_ns"]
    latencies: dict[str, list[int]] = {}
    sections: dict[str, tuple[int, int]] = {}
    number = 0
    for name in SECTIONS:
        first = number
        for _ in range(2 * MESSAGES):
            is_counted = number - first < MESSAGES
            late_ns = rng.randrange(80_000)
            way_ns = MS + rng.randrange(300_000) + (found_ns if name == "with" or not is_counted else 0)
            scheduled_tai_ns = START_TAI_NS + number * PERIOD_NS
            rows.append(f"33,{number},{scheduled_tai_ns},{late_ns},{way_ns + late_ns}")
            if is_counted:
                latencies.setdefault(name, []).append(way_ns)
            number += 1
        begin_ns = START_TAI_NS + first * PERIOD_NS
        sections[name] = (begin_ns, begin_ns + MESSAGES * PERIOD_NS)
    (folder / "messages.csv").write_text("\n".join(rows) + "\n")
    (folder / SECTIONS_FILE).write_text(json.dumps({"scheduled_tai_ns": sections}, indent=1) + "\n")
    seen_ns = (200_000, DELAY_NS + 200_000, 200_000) if seen else (None, None, None)
    transits: dict[str, int | None] = dict(zip(SECTIONS, seen_ns, strict=True))
    answers = ReplayAnswers(folder, answer, {}, {}, [])
    found = compare(PRODUCER, DELAY_NS, latencies, transits, answers)
    file = attempt / "known_delay.json"
    file.write_text(found.to_text())
    context = Context(
        run.run_id,
        "known-delay check",
        Subject("virtual", "linux-rt", "kernel", "two-way"),
        Conditions("ci", "aligned-12", "idle", "none"),
        True,
        (run.evidence(file),),
    )
    return known_delay_record(found, context)
