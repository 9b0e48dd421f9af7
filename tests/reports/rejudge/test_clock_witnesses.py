# SPDX-License-Identifier: Apache-2.0
"""A reference and two-way transfer beside it are compared again alike, and what was changed is named."""

from __future__ import annotations

import json
import shutil

import pytest

from reports.clock_sync.trial import TRIAL, TwoWay
from reports.clock_sync.verdict import witness_measurement
from reports.rejudge.clock_witnesses import clock_witness_discrepancies
from reports.run.folder import RunFolder
from resources.clock_sync.lines import ClockLine
from tests.reports.rejudge.clock_trials import MS, Json, context, edit, named, trial_of
from tests.reports.sample_clock import SECOND_NS, START_TAI_NS, compare_answer


def line(name: str, offset_ns: int, rate_ppb: int, after_ns: int = 0) -> Json:
    """Return the answer of a clock that was asked by two-way transfer."""
    answer: Json = {
        "type": "result",
        "name": name,
        "at_local_tai_ns": START_TAI_NS + 3 * SECOND_NS + after_ns,
    }
    return answer | {"offset_ns": offset_ns, "rate_ppb": rate_ppb, "bound_ns": 70_000 + after_ns // 1000}


def clock_line(answer: Json) -> ClockLine:
    keys = ("offset_ns", "rate_ppb", "bound_ns")
    return ClockLine(answer["name"], answer["at_local_tai_ns"], *(answer[key] for key in keys))


def witnesses(run: RunFolder, mean_ns: int, own: Json, server: Json) -> Json:
    """Write a trial that two-way transfer was beside, as the bench works it out, and return its record."""
    mine, theirs = clock_line(own), clock_line(server)
    end_ns = max(mine.at_reference_tai_ns, theirs.at_reference_tai_ns)
    begin_ns = end_ns - 2_500 * MS
    middle_ns = (begin_ns + end_ns) // 2
    two_way = TwoWay(
        mine.local_ns(middle_ns) - theirs.local_ns(middle_ns),
        mine.bound_ns + theirs.bound_ns,
        theirs.local_ns(begin_ns),
        theirs.local_ns(end_ns),
    )
    trial = trial_of(run, "chrony", compare_answer(mean_ns=mean_ns), two_way=two_way)
    answers = trial.folder / "two-way"
    answers.mkdir(exist_ok=True)
    for answer in (own, server):
        (answers / f"offset-{answer['name']}.ndjson").write_text(json.dumps(answer) + "\n")
        (answers / f"offset-serve-{answer['name']}.ndjson").write_text('{"type":"ready"}\n')
    record = witness_measurement(trial, "BENCH-CLOCK-WITNESSES", context(run, trial))
    assert record is not None
    return record.to_json()


OWN, SERVER = line("linux-rt", 12_345_678, -58_718, 2_640_347), line("grandmaster", 12_340_001, 29_463)


@pytest.mark.parametrize(("mean_ns", "outcome"), [(3_000, "pass"), (900_000, "inconclusive")])
def test_two_witnesses_are_judged_alike(run: RunFolder, mean_ns: int, outcome: str) -> None:
    record = witnesses(run, mean_ns, OWN, SERVER)
    assert record["outcome"] == outcome
    assert clock_witness_discrepancies(run.path, [record]) == ([], 1)


def test_a_server_that_is_the_reference_itself_has_no_answer(run: RunFolder) -> None:
    own = line("linux-rt", 5_000, 100)
    record = witnesses(run, 3_000, own, own | {"name": "host"} | dict.fromkeys(("offset_ns", "rate_ppb"), 0))
    trial = run.path / "evidence" / "clock_sync" / "linux-rt" / "chrony"
    (trial / "two-way" / "offset-host.ndjson").unlink()
    edit(trial / TRIAL, ("two_way.bound_ns", 70_000))
    limits = record["limit"]
    record |= {"limit": {"upper": limits["upper"] - 70_000, "lower": limits["lower"] + 70_000}}
    assert clock_witness_discrepancies(run.path, [record]) == ([], 1)


def test_witnesses_that_were_changed_are_named(run: RunFolder) -> None:
    record = witnesses(run, 3_000, OWN, SERVER)
    named(clock_witness_discrepancies, run, record | {"value": 1}, "value is 1, the witnesses say")
    named(clock_witness_discrepancies, run, record | {"n": 3}, "n is 3, the witnesses say")
    named(
        clock_witness_discrepancies, run, record | {"outcome": "inconclusive"}, "its witnesses come to pass"
    )
    far = {"upper": 2 * MS, "lower": -2 * MS, "source": ""}
    named(clock_witness_discrepancies, run, record | {"limit": far}, "upper limit is 2000000")
    folder = run.path / "evidence" / "clock_sync" / "linux-rt" / "chrony"
    edit(folder / "two-way" / "offset-linux-rt.ndjson", ("offset_ns", 12_445_678))
    named(clock_witness_discrepancies, run, record, "two-way transfer is")
    shutil.rmtree(folder / "two-way")
    assert clock_witness_discrepancies(run.path, [record]) == ([], 1)
    edit(folder / TRIAL, ("two_way.offset_ns", -900_000))
    named(clock_witness_discrepancies, run, record, "value is")
    edit(folder / TRIAL, ("two_way", None))
    named(clock_witness_discrepancies, run, record, "there was no two-way transfer")
