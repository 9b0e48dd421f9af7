# SPDX-License-Identifier: Apache-2.0
"""What was taken away from a run is named, though hashes and counts were made anew."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import pytest

from reports.rejudge.missing import missing_discrepancies
from reports.rejudge.run import rejudge
from reports.run.folder import MANIFEST, MEASUREMENTS, RunFolder
from reports.run.selected import SelectedFile, SelectedSuite
from tests.reports.rejudge.known_delay_run import make_checked_run
from tests.reports.sample_run import Disturbance, add_attempt

TARGET = "linux-rt"
REPLAYS = f"evidence/daq_replay/{TARGET}"
FILE = "limits.toml"
DELAY_FOUND = "known delay 5.031 ms found with an error of 31 us, U 106 us"
Json = dict[str, Any]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a run of two replays that passed, with a check of the bench and a clock that was judged."""
    folder = RunFolder.create(tmp_path, "virtual", "ci", simulated=True, commit="0" * 40)
    for number in (1, 2):
        add_attempt(folder, number, Disturbance(), number, simulated=True, target=TARGET, producers=(1,))
    (folder.path / REPLAYS / "attempt-2" / "known_delay.json").unlink()
    records = records_of(folder.path)
    for answer in [*(folder.path / REPLAYS).rglob("*.ndjson")]:
        if answer.name != "misses.ndjson":
            answer.with_suffix(".err").touch()
    clock = folder.evidence_folder("clock_sync", TARGET, "chrony")
    files = ("trial.json", "filtered.ndjson", "mask.csv")
    for name in (*files, "filtered.err"):
        (clock / name).write_text("{}\n")
    paths = [(clock / name).relative_to(folder.path).as_posix() for name in files]
    records += [
        like(records[0], "BENCH-KNOWN-DELAY", "known_delay_error", [f"{REPLAYS}/attempt-1/known_delay.json"])
        | {"test": "known-delay check"},
        like(records[0], "CLK-CHRONY", "sync_offset", paths[:2]),
        like(records[0], "CLK-CHRONY", "mtie", paths),
    ]
    kept = folder.evidence_folder("requirements") / FILE
    ids = tuple(dict.fromkeys(each["requirement"] for each in records if each["test"] != "known-delay check"))
    own = {"CLK-CHRONY": 'clock = "chrony"\n'}
    kept.write_text("".join(f'[[requirement]]\nid = "{name}"\n{own.get(name, "")}' for name in ids))
    suites = (SelectedSuite(TARGET, "daq_replay/latency_budgets.robot", (SelectedFile(FILE, ids),)),)
    folder.update(asked=suites, outcome="pass", excluded_miss_probability=0.05)
    folder.close()
    write_records(folder.path, records)
    write_output(folder.path, records)
    assert said(folder.path) == []
    return folder.path


def like(record: Json, requirement: str, quantity: str, paths: list[str]) -> Json:
    """Return a record of something else that passed as well."""
    evidence = [{"path": path, "sha256": ""} for path in paths]
    return record | {
        "requirement": requirement,
        "quantity": quantity,
        "evidence": evidence,
        "test": f"{requirement} holds",
    }


def records_of(run: Path) -> list[Json]:
    return [json.loads(line) for line in (run / MEASUREMENTS).read_text().splitlines()]


def manifest_of(run: Path) -> Json:
    return dict(json.loads((run / MANIFEST).read_text()))


def write_records(run: Path, records: list[Json]) -> None:
    (run / MEASUREMENTS).write_text("".join(f"{json.dumps(each)}\n" for each in records))


def write_output(run: Path, records: list[Json]) -> None:
    """Write what Robot Framework's file says of the records."""
    tests: dict[str, list[str]] = {}
    for each in records:
        if each["test"] != "known-delay check":
            text = f"<msg>{each['requirement']}: {each['outcome']}: within its limit</msg>"
            tests.setdefault(each["test"], []).append(text)
    body = "".join(
        f'<test name={quoteattr(name)}><kw>{"".join(texts)}</kw><status status="PASS"/></test>'
        for name, texts in tests.items()
    )
    setup = f'<kw type="SETUP"><msg>{DELAY_FOUND}</msg></kw>'
    (run / "output.xml").write_text(f"<robot><suite>{setup}{body}</suite></robot>")


def said(run: Path) -> list[str]:
    return list(missing_discrepancies(run, manifest_of(run), records_of(run)))


def without(*quantities: str) -> Callable[[Path], None]:
    def take(run: Path) -> None:
        write_records(run, [each for each in records_of(run) if each["quantity"] not in quantities])

    return take


def change_manifest(run: Path, **changes: Any) -> None:
    (run / MANIFEST).write_text(json.dumps(manifest_of(run) | changes))


def without_evidence(run: Path) -> None:
    write_records(run, [each | {"evidence": []} for each in records_of(run)])


def without_raw_files(run: Path) -> None:
    records = records_of(run)
    for each in records:
        each["evidence"] = [file for file in each["evidence"] if not file["path"].endswith("recv.ndjson")]
    write_records(run, records)


def without_attempt(number: int) -> Callable[[Path], None]:
    def take(run: Path) -> None:
        gone = f"{REPLAYS}/attempt-{number}/"
        shutil.rmtree(run / gone)
        kept = [
            each for each in records_of(run) if not any(e["path"].startswith(gone) for e in each["evidence"])
        ]
        write_records(run, kept)
        write_output(run, kept)

    return take


def without_target(run: Path) -> None:
    """Take all of a target away but what Robot Framework's file says of it."""
    shutil.rmtree(run / REPLAYS)
    shutil.rmtree(run / "evidence" / "clock_sync")
    write_records(run, [])
    change_manifest(run, asked=[])


def without_word(quantity: str) -> Callable[[Path], None]:
    """Take a record away, and what Robot Framework's file says of it; its raw data stay."""

    def take(run: Path) -> None:
        records = [each for each in records_of(run) if each["quantity"] != quantity]
        write_records(run, records)
        write_output(run, records)
        text = (run / "output.xml").read_text()
        if quantity == "known_delay_error":
            (run / "output.xml").write_text(text.replace(DELAY_FOUND, ""))

    return take


def with_lone_round_trips(run: Path) -> None:
    """Leave of a measurement of round trips its raw data alone."""
    folder = run / "evidence" / "software_latency" / TARGET
    folder.mkdir(parents=True)
    (folder / "round_trips.json").write_text("{}")


@pytest.mark.parametrize(
    ("take", "named"),
    [
        (without("known_delay_error"), "known-delay check: output.xml tells of 1"),
        (without_word("known_delay_error"), "a known-delay check that no record names"),
        (without("mtie"), "output.xml tells of 2 records of CLK-CHRONY"),
        (without_word("mtie"), "mask.csv: held against a mask, and no record names it"),
        (without("sync_offset", "mtie"), "trial.json: a trial that no record names"),
        (without("sync_offset", "mtie"), "CLK-CHRONY of linux-rt has no record"),
        (without("one_way_latency"), "recv.ndjson: a replay that no record names"),
        (without_evidence, "one_way_latency: its evidence has no recv.ndjson"),
        (without_evidence, "mtie: its evidence has no mask.csv"),
        (without_raw_files, "one_way_latency: its evidence has no recv.ndjson"),
        (without_attempt(1), "has attempts [2], and not each from 1 on"),
        (without_attempt(1), "attempts: 2 of daq_replay/linux-rt, its evidence has 1"),
        (with_lone_round_trips, "round_trips.json: raw data that no record names"),
        (without_target, "output.xml tells of 2 records of CLK-CHRONY"),
    ],
)
def test_what_was_taken_away_is_named(run: Path, take: Callable[[Path], None], named: str) -> None:
    take(run)
    assert [each for each in said(run) if named in each], said(run)


def test_a_stack_beside_another_needs_no_record_where_its_suite_judges_the_other(run: Path) -> None:
    """It is judged in the suite that names it; what that one has measured needs its record all the same."""
    records = records_of(run)
    place = f"evidence/clock_sync/{TARGET}/timeservice"
    for clock in ("timeservice", "chrony"):
        (run / place / clock).mkdir(parents=True)
        for name in ("trial.json", "filtered.ndjson", "filtered.err"):
            (run / place / clock / name).write_text("{}\n")
    paths = [f"{place}/timeservice/{name}" for name in ("trial.json", "filtered.ndjson")]
    records += [like(records[0], "CLK-TIMESERVICE", "sync_offset", paths)]
    write_records(run, records)
    write_output(run, records)
    with (run / "evidence" / "requirements" / FILE).open("a") as kept:
        kept.write('[[requirement]]\nid = "CLK-TIMESERVICE"\nclock = "timeservice"\n')
    (before,) = manifest_of(run)["asked"]
    asks = [{"file": FILE, "requirements": ["CLK-TIMESERVICE"]}]
    change_manifest(run, asked=[before, before | {"suite": "clock_sync/time_service.robot", "asks": asks}])
    assert said(run) == []
    without_word("sync_offset")(run)
    without_word("mtie")(run)
    loose = [each for each in said(run) if each.endswith("no record names")]
    assert [each.partition(":")[0] for each in loose] == [
        f"evidence/clock_sync/{TARGET}/chrony/trial.json",
        f"{place}/chrony/trial.json",
        f"{place}/timeservice/trial.json",
    ]


@pytest.mark.parametrize(
    ("name", "other"), [("send-01.ndjson", "send-01.err"), ("witness.err", "witness.ndjson")]
)
def test_one_of_the_two_files_of_a_tool_is_too_few(run: Path, name: str, other: str) -> None:
    folder = f"{REPLAYS}/attempt-1"
    (run / folder / name).unlink()
    assert said(run) == [f"{folder}/{other}: {name} is not beside it"]


def test_a_witness_within_the_consumer_speaks_there(run: Path) -> None:
    """Its answer has no stderr of its own; without it the times at which it was overdue are of nobody."""
    folder = run / REPLAYS / "attempt-1"
    (folder / "witness-target.ndjson").write_text("{}\n")
    (folder / "emulation.ndjson").write_text('{"overdue_tai_ns":[1,2],"period_ns":1,"vcpu_ran_ns":[]}\n')
    assert said(run) == []
    (folder / "witness-target.ndjson").unlink()
    name = f"{REPLAYS}/attempt-1/emulation.ndjson"
    assert said(run) == [f"{name}: witness-target.ndjson is not beside it"]


def test_attempts_that_were_replayed_and_not_listed_are_named(run: Path) -> None:
    change_manifest(run, attempts=[])
    assert said(run) == ["run.json: attempts: 0 of daq_replay/linux-rt, its evidence has 2"]


def test_tests_that_are_counted_have_their_file(run: Path) -> None:
    change_manifest(run, tests={"passed": 3, "failed": 0, "skipped": 0})
    (run / "output.xml").unlink()
    assert said(run) == ["output.xml: missing, and run.json counts its tests"]


def test_an_outcome_that_was_taken_away_is_no_run_of_before(run: Path) -> None:
    manifest = manifest_of(run)
    del manifest["outcome"]
    (run / MANIFEST).write_text(json.dumps(manifest))
    assert said(run) == ["run.json: outcome is missing, and excluded_miss_probability is there"]


def test_a_run_of_before_may_name_other_files_but_none_is_too_few(run: Path) -> None:
    manifest = manifest_of(run)
    del manifest["outcome"], manifest["excluded_miss_probability"]
    (run / MANIFEST).write_text(json.dumps(manifest))
    without_raw_files(run)
    assert said(run) == []
    without_evidence(run)
    assert len(said(run)) == len(records_of(run))


def test_a_measurement_that_broke_off_may_leave_raw_data(run: Path) -> None:
    without_word("mtie")(run)
    change_manifest(run, failed_tests=[{"target": "", "name": "A", "message": "MEASUREMENT ERROR: ended"}])
    assert said(run) == []


def test_a_clock_that_was_seen_by_its_edges_has_them_as_raw_data(run: Path) -> None:
    """An offset by edges has no answer of the tool that compares clocks: verify objected to each such run."""
    edges = f"evidence/timed_edges/{TARGET}/clocks/clock-edge-chrony/edges.json"
    (run / edges).parent.mkdir(parents=True)
    (run / edges).write_text("{}")
    records = records_of(run)
    records.append(like(records[0], "EDGE-CHRONY", "sync_offset", [edges]))
    write_records(run, records)
    write_output(run, records)
    assert not [each for each in said(run) if "EDGE-CHRONY" in each]


def test_it_is_a_part_of_the_second_judgement(run: Path) -> None:
    without_evidence(run)
    assert [each for each in rejudge(run).problems if "its evidence has no recv.ndjson" in each]


def test_a_value_that_cannot_be_worked_out_again_is_named(tmp_path: Path) -> None:
    """Without the times of its sections no message of a known-delay check is known to be delayed."""
    run = make_checked_run(tmp_path)
    says = "BENCH-KNOWN-DELAY: known_delay_error: could not be worked"
    found = rejudge(run.path)
    assert found.contradicted == ()
    assert not [each for each in found.problems if says in each]
    (run.path / "evidence/daq_replay/attempt-1/known_delay/sections.json").unlink()
    assert [each for each in rejudge(run.path).problems if says in each]
