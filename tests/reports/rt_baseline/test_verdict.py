# SPDX-License-Identifier: Apache-2.0
"""The verdict on wake-ups, and the second judge's on each of the same records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reports.control_loops.load import KnownLoad
from reports.errors import RecordError
from reports.record.context import Context
from reports.record.measurement import AxisValue, Conditions, Limit, NumberedCondition, Subject
from reports.rejudge.arithmetic import discrepancies
from reports.requirements import Requirement
from reports.rt_baseline.again import wakeup_discrepancies
from reports.rt_baseline.capability import BESIDE, MAX, P9999, WAKEUP_LATENCY
from reports.rt_baseline.emulator import EMULATION
from reports.rt_baseline.evidence import (
    CYCLICTEST,
    FOLDER,
    HISTOGRAM,
    IDLE,
    WAKEUPS,
    evidence_files,
    load_wakeups,
)
from reports.rt_baseline.verdict import BOUNDED_FROM, wakeup_measurement
from reports.run.folder import RunFolder
from tests.reports.rt_baseline.sample import CYCLES, QUIET, TARGET, late, write_case

Json = dict[str, Any]
LIMIT_US = 1000
MS = 1_000_000


def made(
    tmp_path: Path, statistic: str, samples: int = CYCLES, limit_us: int = LIMIT_US, **case: Any
) -> tuple[RunFolder, Json]:
    """Return a run, and the record of one case by one requirement of LIMIT_US."""
    run = RunFolder.create(tmp_path / "results", "native", "ci", simulated=True, commit="0" * 40)
    folder = write_case(run.evidence_folder(FOLDER, TARGET) / IDLE, **case)
    found = load_wakeups(folder)
    requirement = Requirement(
        id="RT",
        quantity=WAKEUP_LATENCY,
        statistic=statistic,
        limit=Limit(limit_us * 1000, None, "a test"),
        unit="ns",
        subject=(BESIDE, found.beside),
        samples=samples,
    )
    numbers = NumberedCondition("interval_us", 200), NumberedCondition("priority", 95)
    context = Context(
        run.run_id,
        "test",
        Subject("native", TARGET, axes=(AxisValue(BESIDE, found.beside),)),
        Conditions("ci", load=found.load.kind if found.load else "idle", numbers=numbers),
        simulated=True,
        evidence=tuple(map(run.evidence, evidence_files(folder))),
    )
    run.append(wakeup_measurement(found, requirement, context))
    return run, json.loads((run.path / "measurements.jsonl").read_text())


def judged(tmp_path: Path, statistic: str, **case: Any) -> Json:
    """Return the record, which the second judge has nothing against."""
    run, record = made(tmp_path, statistic, **case)
    assert wakeup_discrepancies(run.path, [record]) == ([], 1)
    assert list(discrepancies(record)) == []
    return record


def test_the_maximum_is_that_of_the_worst_cpu(tmp_path: Path) -> None:
    record = judged(tmp_path, MAX, cpus={0: QUIET, 1: late(300)})
    assert (record["value"], record["n"], record["outcome"]) == (300_000, CYCLES, "pass")
    assert record["uncertainty"]["expanded"] == 1000


def test_a_quantile_has_the_upper_end_of_its_interval_in_u(tmp_path: Path) -> None:
    record = judged(tmp_path, P9999)
    assert (record["value"], record["outcome"]) == (80_000, "pass")
    parts = {each["name"]: each["value"] for each in record["uncertainty"]["parts"]}
    assert parts == {"whole_us": 1000, "order_statistic": 40_000}


def test_the_upper_end_counts_of_whatever_cpu_it_is(tmp_path: Path) -> None:
    record = judged(tmp_path, P9999, cpus={0: QUIET, 1: late(900, 70, 70, 70, 70, 70)})
    assert record["value"] == 80_000
    assert record["uncertainty"]["expanded"] == 821_000


@pytest.mark.parametrize(("cycles", "outcome"), [(BOUNDED_FROM - 1, "inconclusive"), (BOUNDED_FROM, "pass")])
def test_too_few_cycles_bound_no_quantile(cycles: int, outcome: str, tmp_path: Path) -> None:
    cpus = {1: {15: cycles}}
    record = judged(tmp_path, P9999, cpus=cpus, cycles=cycles, samples=1000)
    assert record["outcome"] == outcome
    assert ("give the quantile no upper bound" in record["reason"]) == (outcome != "pass")


def test_one_late_wakeup_of_too_few_cycles_is_no_late_quantile(tmp_path: Path) -> None:
    """Of 1000 cycles the largest stands for the p99.99: one of ten such runs has one beyond it by chance."""
    case: Json = {"cpus": {1: {15: 999, 5000: 1}}, "cycles": 1000, "samples": 1000, "machine": "own"}
    record = judged(tmp_path / "few", P9999, **case)
    assert record["outcome"] == "inconclusive"
    assert "give the quantile no upper bound" in record["reason"]
    assert judged(tmp_path / "max", MAX, **case)["outcome"] == "fail"


def test_too_few_samples_have_no_verdict(tmp_path: Path) -> None:
    record = judged(tmp_path, MAX, samples=CYCLES + 1)
    assert (record["outcome"], record["reason"]) == ("inconclusive", "too few samples: 40000 of 40001")


def test_a_late_wakeup_without_a_pause_fails(tmp_path: Path) -> None:
    for number, case in enumerate(
        ({"pauses": None}, {"pauses": ()}, {"pauses": [(1, 1 * MS)]}, {"pauses": [(0, 4 * MS)]})
    ):
        record = judged(tmp_path / str(number), MAX, cpus={1: late(5000)}, **case)
        assert record["outcome"] == "fail", case
        assert "is over 1 ms by more than U" in record["reason"]


def test_a_pause_that_is_long_enough_leaves_no_verdict(tmp_path: Path) -> None:
    record = judged(tmp_path, MAX, cpus={1: late(5000)}, pauses=[(1, 4 * MS)])
    assert record["outcome"] == "inconclusive"
    assert record["reason"].endswith("pauses of the machine may explain it, each one of 1 late wake-ups")


def test_a_pause_counts_from_a_period_before(tmp_path: Path) -> None:
    """What is over limit + U, 3.999 ms, less the witness's period."""
    for number, (late_ns, outcome) in enumerate(((3_749_000, "inconclusive"), (3_748_999, "fail"))):
        record = judged(tmp_path / str(number), MAX, cpus={1: late(5000)}, pauses=[(1, late_ns)])
        assert record["outcome"] == outcome


def test_each_late_wakeup_needs_a_pause_of_its_own(tmp_path: Path) -> None:
    one = judged(tmp_path / "one", MAX, cpus={1: late(3000, 5000)}, pauses=[(1, 9 * MS)])
    assert one["outcome"] == "fail"
    assert "1 of 2 wake-ups over it of CPU 1 have no pause of the machine as long" in one["reason"]
    two = judged(tmp_path / "two", MAX, cpus={1: late(3000, 5000)}, pauses=[(1, 4 * MS), (1, 2 * MS)])
    assert two["outcome"] == "inconclusive"


def test_an_emulator_that_nobody_watches_leaves_no_verdict(tmp_path: Path) -> None:
    record = judged(tmp_path, MAX, cpus={1: late(5000)}, machine="guest")
    assert record["outcome"] == "inconclusive"
    assert "whether its emulator ran it when it was late nobody watched" in record["reason"]


def test_a_guest_that_its_emulator_ran_fails(tmp_path: Path) -> None:
    """No pause is as long as it is late: what is left is the guest's own."""
    for number, emulator in enumerate(([], [(1, 2 * MS)], [(0, 9 * MS)])):
        case: Json = {"cpus": {0: QUIET, 1: late(5000)}, "machine": "guest", "emulator": emulator}
        assert judged(tmp_path / str(number), MAX, **case)["outcome"] == "fail", emulator


def test_a_guest_that_its_emulator_did_not_run_has_no_verdict(tmp_path: Path) -> None:
    """A pause is enough where it lasted as long as the wake-up is over limit + U, 3.999 ms."""
    for pause_ns, outcome in ((3_999_000, "inconclusive"), (3_998_999, "fail")):
        case: Json = {"cpus": {0: late(5000)}, "machine": "guest", "emulator": [(0, pause_ns)]}
        assert judged(tmp_path / outcome, MAX, **case)["outcome"] == outcome


def test_a_pause_while_cyclictest_was_not_due_excuses_nothing(tmp_path: Path) -> None:
    """The guest slept then as it liked."""
    case: Json = {"cpus": {0: late(5000)}, "machine": "guest", "emulator": [(0, 4 * MS)]}
    run, record = made(tmp_path, MAX, **case)
    assert record["outcome"] == "inconclusive"
    (file,) = run.path.rglob(EMULATION)
    file.write_text(json.dumps(json.loads(file.read_text()) | {"due_tai_ns": [10**9, 9 * 10**9]}))
    problems, _ = wakeup_discrepancies(run.path, [record])
    assert problems == ["RT: inconclusive, cyclictest.hist comes to fail"]
    with pytest.raises(RecordError, match=r"emulation\.ndjson: .*outside of due_tai_ns"):
        load_wakeups(file.parent)


def test_the_same_time_is_lost_once(tmp_path: Path) -> None:
    """One pause does not explain two wake-ups that are as long as it; two pauses do."""
    case: Json = {"cpus": {0: late(5000, 5000)}, "machine": "guest"}
    pauses = [(0, 4 * MS)]
    once = judged(tmp_path / "once", MAX, **case, pauses=pauses, emulator=[])
    assert once["outcome"] == "fail"
    assert "1 of 2 wake-ups over it of CPU 0" in once["reason"]
    twice = judged(tmp_path / "twice", MAX, **case, pauses=pauses, emulator=[(0, 4 * MS)])
    assert twice["outcome"] == "inconclusive"


def test_several_pauses_count_where_they_lie_in_one_wakeup_of_a_guest(tmp_path: Path) -> None:
    """Of 3 ms and half a second apart: together they take 6 ms of one that is 504 ms late."""
    case: Json = {"machine": "guest", "pauses": [(0, 3 * MS)], "emulator": [(0, 3 * MS)]}
    for number, (limit_us, outcome) in enumerate(((498_500, "inconclusive"), (497_000, "fail"))):
        record = judged(tmp_path / str(number), MAX, cpus={0: late(504_000)}, limit_us=limit_us, **case)
        assert record["outcome"] == outcome


def test_an_emulator_without_a_witness_beside_it_leaves_no_verdict(tmp_path: Path) -> None:
    case: Json = {"cpus": {0: late(5000)}, "machine": "guest", "emulator": [], "pauses": None}
    record = judged(tmp_path, MAX, **case)
    assert record["outcome"] == "inconclusive"


def test_a_guest_may_have_lost_any_cpu(tmp_path: Path) -> None:
    pauses = [(0, 5 * MS)]
    guest = judged(tmp_path / "guest", MAX, cpus={1: late(5000)}, pauses=pauses, machine="guest", emulator=[])
    assert "pauses of the machine may explain it" in guest["reason"]
    own = judged(tmp_path / "own", MAX, cpus={1: late(5000)}, pauses=[(1, 5 * MS)], machine="own")
    assert own["outcome"] == "fail"


def test_what_the_target_ran_is_no_pause_unless_it_was_stolen(tmp_path: Path) -> None:
    case: Json = {"cpus": {1: late(5000)}, "pauses": [(1, 5 * MS)], "ran_ns": [3 * MS]}
    assert judged(tmp_path / "ran", MAX, **case)["outcome"] == "fail"
    stolen = judged(tmp_path / "stolen", MAX, **case, stolen_ns=10 * MS)
    assert stolen["outcome"] == "inconclusive"
    assert "of which nobody knows whether they are the machine's" in stolen["reason"]


def test_time_that_nobody_claims_is_said(tmp_path: Path) -> None:
    record = judged(tmp_path, MAX, cpus={1: late(5000)}, pauses=[(1, 5 * MS)], unclaimed_ns=[5 * MS])
    assert record["outcome"] == "inconclusive"
    assert "of which nobody knows whether they are the machine's" in record["reason"]


def test_pauses_without_room_leave_no_verdict(tmp_path: Path) -> None:
    record = judged(tmp_path, MAX, cpus={1: late(5000)}, dropped=2)
    assert record["outcome"] == "inconclusive"
    assert "the witness had no room for 2 pauses" in record["reason"]


def test_of_a_quantile_a_ten_thousandth_needs_no_pause(tmp_path: Path) -> None:
    """Five of 40000 make a p99.99 of 5 ms; four may be late by themselves."""
    cpus = {1: late(*[5000] * 5)}
    assert judged(tmp_path / "none", P9999, cpus=cpus)["outcome"] == "fail"
    one = judged(tmp_path / "one", P9999, cpus=cpus, pauses=[(1, 5 * MS)])
    assert one["outcome"] == "inconclusive"


def test_no_pause_makes_a_pass(tmp_path: Path) -> None:
    record = judged(tmp_path, MAX, cpus={1: late(1001)}, pauses=[(1, 90 * MS)] * 9)
    assert record["outcome"] == "inconclusive"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"value": 119_000}, "value: 119000, cyclictest.hist says 120000"),
        ({"n": 39_999}, "n: 39999, cyclictest.hist says 40000"),
        ({"outcome": "inconclusive"}, "inconclusive, cyclictest.hist comes to pass"),
        ({"subject": {"target": "x", "axes": [{"axis": BESIDE, "value": "nothing"}]}}, "is of linux beside"),
        ({"subject": {"target": TARGET, "axes": [{"axis": BESIDE, "value": "cpu load"}]}}, "beside nothing"),
        ({"conditions": {"load": "cpu", "numbers": []}}, "its load is cpu"),
        ({"conditions": {"load": "idle", "numbers": []}}, "conditions are {}"),
        ({"uncertainty": {"expanded": 0, "parts": []}}, "parts of U: {}"),
    ],
)
def test_what_the_text_contradicts_is_named(change: Json, told: str, tmp_path: Path) -> None:
    run, record = made(tmp_path, MAX)
    problems, _ = wakeup_discrepancies(run.path, [record | change])
    assert told in "\n".join(problems)


@pytest.mark.parametrize(
    ("name", "own", "told"),
    [
        ("stolen_ppm", 4640, "stolen_ppm is 0, the evidence says 4640"),
        ("cpus", 2, "cpus is 0, the evidence says 2"),
        ("above_value", 4, "above_value is 0, the evidence says 4"),
    ],
)
def test_conditions_are_those_of_the_evidence(name: str, own: int, told: str, tmp_path: Path) -> None:
    run, record = made(tmp_path, P9999, cpus={0: QUIET, 1: QUIET})
    for value, problems in ((own, []), (0, [f"RT: {told}"])):
        numbers = [*record["conditions"]["numbers"], {"name": name, "value": value}]
        changed = record | {"conditions": {"load": "idle", "numbers": numbers}}
        assert wakeup_discrepancies(run.path, [changed]) == (problems, 1)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("000120 000001", "000120 000002", "its rows sum up to [40001]"),
        ("Overflows: 00000", "Overflows: 00001", "overflows [1]"),
        ("Max Latencies: 00120", "Max Latencies: 00121", "its rows end elsewhere than at [121]"),
        ("000120 000001", "000121 000001", "value: 120000, cyclictest.hist says 121000"),
        ("# Total:", "# Sum:", "KeyError"),
        ("000080 000009", "000080 000007\n000080 000009", "cyclictest.hist: has a row of 80 us twice"),
    ],
)
def test_a_text_of_another_run_is_named(before: str, after: str, told: str, tmp_path: Path) -> None:
    run, record = made(tmp_path, MAX)
    (file,) = run.path.rglob(HISTOGRAM)
    file.write_text(file.read_text().replace(before, after))
    problems, _ = wakeup_discrepancies(run.path, [record])
    assert told in "\n".join(problems)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"histogram": {"15": CYCLES - 10, "70": 9, "120": 1}}, "its thread 1 has another histogram than"),
        ({"histogram": {"15": CYCLES - 10, "80": 9.5, "120": 1}}, "its thread 1 has another histogram than"),
        ({"histogram": {}}, "its thread 1 has another histogram than"),
        (None, "1 threads, cyclictest.hist has 2"),
    ],
)
def test_a_document_of_other_histograms_is_named(change: Json | None, told: str, tmp_path: Path) -> None:
    """The page shows what the document has, though value and U may be those of the text."""
    run, record = made(tmp_path, MAX, cpus={0: QUIET, 1: QUIET})
    (file,) = run.path.rglob(CYCLICTEST)
    document = json.loads(file.read_text())
    if change is None:
        del document["thread"]["1"]
        document["num_threads"] = 1
    else:
        document["thread"]["1"].update(change)
    file.write_text(json.dumps(document))
    problems, _ = wakeup_discrepancies(run.path, [record])
    assert f"RT: cyclictest.json: {told}" in "\n".join(problems)


@pytest.mark.parametrize("text", ["", '{"thread": ', "[]"])
def test_a_document_that_is_damaged_is_no_evidence(text: str, tmp_path: Path) -> None:
    run, record = made(tmp_path, MAX)
    (file,) = run.path.rglob(CYCLICTEST)
    file.write_text(text)
    problems, _ = wakeup_discrepancies(run.path, [record])
    assert len(problems) == 1


def test_a_text_that_is_wider_than_asked_is_named(tmp_path: Path) -> None:
    run, record = made(tmp_path, MAX)
    (file,) = run.path.rglob(WAKEUPS)
    file.write_text(json.dumps(json.loads(file.read_text()) | {"histogram_us": 120}))
    problems, _ = wakeup_discrepancies(run.path, [record])
    assert "RT: cyclictest.hist: goes on to [120], wakeups.json has it end before 120" in problems


def test_evidence_that_no_record_names_is_missed(tmp_path: Path) -> None:
    run, record = made(tmp_path, MAX, load=KnownLoad("compile-like", TARGET))
    assert wakeup_discrepancies(run.path, [record]) == ([], 1)
    few = [each for each in record["evidence"] if each["path"].endswith("wakeups.json")]
    problems, _ = wakeup_discrepancies(run.path, [record | {"evidence": few}])
    for name in ("cyclictest.hist", "cyclictest.json", "load.json"):
        assert f"RT: {name} is not among its evidence" in problems
