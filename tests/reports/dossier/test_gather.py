# SPDX-License-Identifier: Apache-2.0
"""What a dossier says: accepted only where everything passed on hardware, and every doubt is said."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from reports.dossier.errors import CHANGED, INTERRUPTED, DossierError
from reports.dossier.gather import NOTHING_ASKED, named_file
from reports.dossier.model import Dossier, Request, RequirementRow, from_dossier_json, to_dossier_bytes
from reports.dossier.page import dossier_page
from reports.errors import RecordError, RequirementsError
from reports.record.measurement import Conditions, Limit, Measurement, Subject, Uncertainty
from reports.run.folder import RunFolder
from reports.run.integrity import SUMS
from reports.run.selected import SelectedFile, SelectedSuite, SkippedTest
from tests.reports.dossier.sample import (
    FACTS,
    INSTRUMENTS,
    asked,
    conceding,
    finished_run,
    gather,
    record,
    requirements_text,
    small_run,
    waiver,
)
from tests.reports.sample_run import Disturbance, make_run

ONE = requirements_text("DAQ-031")
TWO = requirements_text("DAQ-031", "DAQ-032")


def row(dossier: Dossier, name: str) -> RequirementRow:
    return next(row for target in dossier.targets for row in target.requirements if row.id == name)


def said(dossier: Dossier) -> str:
    return "\n".join(dossier.conclusion.reasons)


def deviations(dossier: Dossier) -> str:
    return "\n".join(f"{each.kind}: {each.text}" for each in dossier.deviations)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Dossier:
    """Return the dossier of one real run of the whole pattern, which has two attempts."""
    stalled = Disturbance(path_delay_ns={13: 15_000_000}, stalled=True)
    return gather([finished_run(tmp_path_factory.mktemp("whole"), stalled, Disturbance()).path])


def test_a_real_run_that_met_everything_is_accepted(whole: Dossier):
    assert (whole.conclusion.word, whole.conclusion.reasons) == ("accepted", ())
    target = whole.targets[0]
    assert (target.bench, target.name, target.simulated) == ("virtual", "linux-rt", False)
    assert len(target.requirements) == 48
    assert {each.status for each in target.requirements} == {"pass"}
    assert row(whole, "DAQ-013").text == "one way latency, max, of stream 13: at most 10 ms, none lost"
    assert row(whole, "DAQ-013").tests == ("Robot.Daq Replay.Budgets.Stream 13",)


def test_every_attempt_is_there_and_why_it_does_not_count(whole: Dossier):
    result = row(whole, "DAQ-013").results[0]
    assert [(each.number, each.role) for each in result.attempts] == [(1, "not valid"), (2, "decides")]
    assert "the machine took up to" in result.attempts[0].why
    assert result.shown == 2
    assert "DAQ-013 (stream 13, stack kernel, clock two-way" in deviations(whole)
    assert sum(len(each.results[0].attempts) for each in whole.targets[0].requirements) == 96


def test_results_carry_percentiles_with_intervals_and_u_with_its_parts(whole: Dossier):
    result = row(whole, "DAQ-033").results[0]
    shown = result.attempts[result.shown - 1].record
    found = result.distribution
    assert found is not None
    assert (found.what, found.unit, found.n, found.maximum) == (
        "received - scheduled",
        "ns",
        shown.n,
        shown.value,
    )
    assert [each.share for each in found.percentiles] == [0.5, 0.99]
    for each in found.percentiles:
        assert each.low is not None
        assert each.high is not None
        assert each.low <= each.value <= each.high
    assert {part.name for part in shown.uncertainty.parts} == {"clock_offset", "clock_residual"}


def test_the_target_is_known_as_it_was_read_back(whole: Dossier):
    configuration = whole.targets[0].configurations[0]
    identity = {pair.name: pair.value for pair in configuration.identity}
    assert identity["host name"] == "target-7"
    assert identity["kernel"] == "6.12.57-rt"
    assert identity["driver of eth0"] == "igc 6.12 firmware 1057:8754"
    assert identity["serial number"] is None
    assert len(configuration.sha256) == 64
    provisioning = whole.targets[0].provisioning[0]
    assert [setting.item for setting in provisioning.settings if setting.changed] == ["sysctl vm/swappiness"]
    assert provisioning.differences == ("settings.sysctl vm/swappiness: 60 before, 0 after",)
    assert "provisioning: linux-rt on virtual: governor all: not applicable" in deviations(whole)


def test_instruments_wiring_impairment_tests_and_files_are_listed(whole: Dossier):
    run = whole.runs[0]
    assert run.instruments is not None
    assert run.wiring is not None
    scope = run.instruments[0]
    assert (scope.name, scope.serial, scope.remark) == ("scope", "B012345", "")
    assert scope.calibration is not None
    assert (scope.calibration.certificate, scope.calibration.valid) == ("K-2026-118", True)
    assert (run.wiring[0].name, run.wiring[0].value) == ("target.eth0", "switch 3, port 7")
    assert run.impairments[0].asked == "5 ms"
    assert "5.031 ms found" in str(run.impairments[0].read_back)
    assert run.tests_skipped[0].value == "profile ci measures no clock under load"
    assert "evidence/requirements/daq12.toml" in {file.path for file in run.files}
    assert all(len(file.sha256) == 64 for file in run.files)
    assert (whole.requirements_files[0].file, whole.requirements_files[0].requirements) == (
        "evidence/requirements/daq12.toml",
        48,
    )


def test_the_data_come_back_the_same(whole: Dossier):
    data = json.loads(to_dossier_bytes(whole))
    assert from_dossier_json(data) == whole
    assert data["targets"][0]["requirements"][0]["results"][0]["attempts"][1]["record"]["outcome"] == "pass"
    data["surprise"] = 1
    with pytest.raises(RecordError, match="surprise"):
        from_dossier_json(data)


def test_a_simulated_run_is_never_accepted_though_everything_passed(tmp_path: Path):
    run = small_run(tmp_path, record(simulated=True), simulated=True, requirements=ONE)
    found = gather([run.path], asked(tmp_path, conceding("DAQ-031")))
    assert found.simulated
    assert row(found, "DAQ-031").status == "untested on hardware"
    assert row(found, "DAQ-031").waived == ""
    assert found.conclusion.word == "not accepted"
    assert "DAQ-031: untested on hardware: on a simulated bench: pass" in said(found)
    assert "no effect" in found.waivers[0].effect


@pytest.mark.parametrize("of_run", [True, False])
def test_a_run_or_a_record_that_says_simulated_is_enough(tmp_path: Path, of_run: bool):
    run = small_run(tmp_path, record(simulated=not of_run), simulated=of_run, requirements=ONE)
    found = gather([run.path])
    assert (found.simulated, found.conclusion.word) == (True, "not accepted")


def test_requirements_that_nobody_measured_are_listed(tmp_path: Path):
    found = gather([small_run(tmp_path, record(), requirements=TWO).path])
    assert (row(found, "DAQ-031").status, row(found, "DAQ-032").status) == ("pass", "untested")
    assert found.conclusion.word == "not accepted"
    assert "DAQ-032: untested: one_way_latency max" in said(found)


def test_what_was_skipped_is_listed_with_its_reason_and_accepts_nothing(tmp_path: Path):
    file = SelectedFile("site.toml", ("DAQ-031", "DAQ-032"))
    skipped = SkippedTest("Second Stream", "the bench has one producer", ("DAQ-032",))
    asked = (SelectedSuite("linux-rt", "own.robot", (file,), (skipped,)),)
    found = gather([small_run(tmp_path, record(), requirements=TWO, asked=asked).path])
    assert [(each.id, each.status) for each in found.targets[0].requirements] == [
        ("DAQ-031", "pass"),
        ("DAQ-032", "skipped"),
    ]
    assert found.conclusion.word == "not accepted"
    assert "DAQ-032: skipped: the bench has one producer" in said(found)
    assert "the bench has one producer" in dossier_page(found, ())


def test_a_part_that_nobody_measured_leaves_the_requirement_untested(tmp_path: Path):
    text = (
        '[requirements]\nschema = "benchwright.requirements/2"\nname = "c"\n[[requirement]]\nid = "C"\n'
        'clock = "chrony"\nquantity = "sync_offset"\nstatistic = "max_abs"\nupper_ns = 2000000\n'
        'lock_within_s = 90\nsource = "x"\nmask = "paper-40us"\n'
    )
    limit = Limit(2_000_000, -2_000_000, "x")
    parts = Uncertainty.from_parts([])
    clock: dict[str, Any] = {
        "requirement": "C", "quantity": "sync_offset", "statistic": "max_abs", "value": 5, "limit": limit,
        "uncertainty": parts, "margin": 1_999_995, "subject": Subject("bench-1", "linux-rt", clock="chrony"),
    }  # fmt: skip
    found = gather([small_run(tmp_path, record(**clock), requirements=text).path])
    assert row(found, "C").missing == ("lock_time", "mask paper-40us")
    assert (row(found, "C").status, found.conclusion.word) == ("untested", "not accepted")
    assert row(found, "C").text == (
        "sync offset, max abs, of clock chrony: at most 2 ms, locked within 90 s, mask paper-40us"
    )


def test_without_a_file_of_requirements_nothing_is_accepted(tmp_path: Path):
    run = small_run(tmp_path, record())
    found = gather([run.path])
    assert row(found, "DAQ-031").status == "pass"
    assert found.conclusion.word == "not accepted"
    assert "which requirements there are is not known" in said(found)
    assert "DAQ-031 stands in no requirements file" in deviations(found)
    path = tmp_path / "site.toml"
    path.write_text(ONE)
    named = Request(None, None, None, None, (named_file("requirements", path),), ())
    assert gather([run.path], named).conclusion.word == "accepted"


def test_a_file_that_is_named_holds_before_those_that_runs_kept(tmp_path: Path):
    run = small_run(tmp_path, record(), requirements=ONE)
    path = tmp_path / "stricter.toml"
    path.write_text(requirements_text("DAQ-031", upper_us=20_000))
    found = gather([run.path], Request(None, None, None, None, (named_file("requirements", path),), ()))
    assert row(found, "DAQ-031").file == "stricter.toml"
    assert row(found, "DAQ-031").status == "inconclusive"
    assert "judged against 50000000 ns, the requirement is 20000000" in said(found)


def test_runs_that_kept_different_requirements_need_a_decision(tmp_path: Path):
    one = small_run(tmp_path / "1", record(), requirements=ONE)
    two = small_run(tmp_path / "2", record(), requirements=requirements_text("DAQ-031", upper_us=60_000))
    with pytest.raises(RequirementsError, match=r"requirement DAQ-031: .* differ; name the file that holds"):
        gather([one.path, two.path])


def with_calibration(**changes: str) -> dict[str, Any]:
    instruments = copy.deepcopy(INSTRUMENTS)
    instruments["card"]["calibration"].update(changes)
    return instruments


@pytest.mark.parametrize(
    ("changes", "remark"),
    [
        ({"due": "2026-01-16"}, "calibration expired on 2026-01-16"),
        ({"date": "2099-01-01"}, "calibrated on 2099-01-01, after the run began"),
        ({"due": "soon"}, "calibration.due: 'soon' is no date"),
    ],
)
def test_what_rests_on_an_expired_calibration_is_not_accepted(
    tmp_path: Path, changes: dict[str, str], remark: str
):
    run = small_run(tmp_path, record(), requirements=ONE, instruments=with_calibration(**changes))
    found = gather([run.path])
    assert (row(found, "DAQ-031").status, found.conclusion.word) == ("inconclusive", "not accepted")
    assert f"card: {remark}" in said(found)
    assert f"instrument: card: {remark}" in deviations(found)


def test_an_oscilloscope_out_of_calibration_touches_timed_edges_alone(tmp_path: Path):
    instruments = copy.deepcopy(INSTRUMENTS)
    instruments["scope"]["calibration"]["due"] = "2026-01-16"
    found = gather([small_run(tmp_path, record(), requirements=ONE, instruments=instruments).path])
    assert found.conclusion.word == "accepted"
    assert "scope: calibration expired" in deviations(found)


def test_what_old_runs_do_not_say_is_said(tmp_path: Path):
    found = gather([small_run(tmp_path, record(), requirements=ONE, instruments=None).path])
    assert (found.runs[0].instruments, found.runs[0].wiring) == (None, None)
    assert "instruments and their calibration: not recorded" in deviations(found)


def test_a_bench_that_failed_its_own_check_leaves_no_pass(tmp_path: Path):
    limit = Limit(1000, -1000, "U of the bench")
    check = record(
        "fail", "found too much", requirement="BENCH-KNOWN-DELAY", quantity="known_delay_error",
        statistic="median", value=5000, limit=limit, uncertainty=Uncertainty.from_parts([]), margin=-4000,
    )  # fmt: skip
    found = gather([small_run(tmp_path, record(), check, requirements=ONE).path])
    assert row(found, "DAQ-031").status == "inconclusive"
    assert "check BENCH-KNOWN-DELAY of the bench: fail: found too much" in said(found)
    assert found.targets[0].checks[0].attempts[0].record.requirement == "BENCH-KNOWN-DELAY"
    assert [each.id for each in found.targets[0].requirements] == ["DAQ-031"]


def test_the_first_valid_attempt_decides_over_runs_in_any_order(tmp_path: Path):
    first = small_run(tmp_path / "1", record("fail", "too late"), requirements=ONE)
    second = small_run(tmp_path / "2", record(), requirements=ONE)
    found = gather([second.path, first.path])
    assert row(found, "DAQ-031").status == "fail"
    assert [each.run_id for each in row(found, "DAQ-031").results[0].attempts] == [
        first.run_id,
        second.run_id,
    ]
    assert to_dossier_bytes(found) == to_dossier_bytes(gather([first.path, second.path]))
    aside = waiver(requirement="DAQ-031", run=first.run_id, attempt=1)
    waived = gather([first.path, second.path], asked(tmp_path, aside))
    assert waived.conclusion.word == "accepted with waivers"
    assert "attempt 1 set aside by waiver W-1" in said(waived)
    assert (waived.waivers[0].run, waived.waivers[0].effect) == (first.run_id, "1 attempt set aside")
    assert waived.id != found.id


def test_an_earlier_run_that_was_repeated_cannot_be_kept_silent(tmp_path: Path):
    first = small_run(tmp_path / "1", record("fail", "too late"), requirements=ONE)
    second = small_run(tmp_path / "2", record(), requirements=ONE, earlier=first.run_id)
    alone = gather([second.path])
    assert alone.conclusion.word == "not accepted"
    assert f"repeats run {first.run_id}, which is not part of this dossier" in said(alone)
    assert row(gather([first.path, second.path]), "DAQ-031").status == "fail"
    left_out = gather([second.path], asked(tmp_path, waiver(run=first.run_id)))
    assert left_out.conclusion.word == "accepted with waivers"
    assert left_out.waivers[0].effect == "left out of the dossier"
    part = asked(tmp_path, waiver(run=first.run_id, requirement="DAQ-031"))
    with pytest.raises(DossierError, match="the run did not measure DAQ-031"):
        gather([second.path], part)


def test_a_pass_that_a_later_run_contradicts_is_not_accepted(tmp_path: Path):
    first = small_run(tmp_path / "1", record(), requirements=ONE)
    second = small_run(tmp_path / "2", record("fail", "too late"), requirements=ONE)
    found = gather([first.path, second.path])
    assert (row(found, "DAQ-031").status, found.conclusion.word) == ("pass", "not accepted")
    assert "passed first; a later attempt did not pass" in said(found)
    aside = asked(tmp_path, waiver(run=second.run_id))
    assert gather([first.path, second.path], aside).conclusion.word == "accepted with waivers"


def test_a_concession_accepts_a_requirement_and_is_said(tmp_path: Path):
    other = record(
        "fail",
        "too late",
        requirement="DAQ-032",
        subject=Subject("bench-1", "linux-rt", "kernel", stream="32"),
    )
    run = small_run(tmp_path, record(), other, requirements=TWO)
    assert gather([run.path]).conclusion.word == "not accepted"
    found = gather([run.path], asked(tmp_path, conceding("DAQ-032")))
    assert (found.conclusion.word, row(found, "DAQ-032").status) == ("accepted with waivers", "fail")
    assert row(found, "DAQ-032").waived == "W-1"
    assert found.waivers[0].effect == "accepted on linux-rt on bench-1 although fail"


def test_where_nothing_passed_waivers_accept_nothing(tmp_path: Path):
    run = small_run(tmp_path, record("fail", "too late"), requirements=ONE)
    found = gather([run.path], asked(tmp_path, conceding("DAQ-031")))
    assert found.conclusion.word == "not accepted"
    assert "nothing passed on hardware" in said(found)


def test_waivers_expire_against_the_day_of_the_dossier(tmp_path: Path):
    run = small_run(tmp_path, record(), requirements=ONE)
    text = conceding("DAQ-031") + "expires = 2100-01-01\n"
    assert gather([run.path], asked(tmp_path, text)).waivers[0].expires == "2100-01-01"
    with pytest.raises(DossierError, match=r"waiver\[1\].expires: expired on 2100-01-01"):
        gather([run.path], asked(tmp_path, text, date="2100-01-02"))
    with pytest.raises(DossierError, match="date: 'today' is no date"):
        gather([run.path], asked(tmp_path, date="today"))


def test_two_configurations_of_a_target_are_not_one_thing(tmp_path: Path):
    one = small_run(tmp_path / "1", record(), requirements=ONE)
    other = copy.deepcopy(FACTS)
    other["kernel"]["release"] = "6.12.99-rt"
    two = small_run(tmp_path / "2", record(), requirements=ONE, facts=other)
    found = gather([one.path, two.path])
    assert len(found.targets[0].configurations) == 2
    assert found.conclusion.word == "not accepted"
    assert f"kernel.release: 6.12.57-rt in run {one.run_id}, 6.12.99-rt in run {two.run_id}" in deviations(
        found
    )


def test_what_changes_by_itself_makes_no_other_configuration(tmp_path: Path):
    one = small_run(tmp_path / "1", record(), requirements=ONE)
    other = copy.deepcopy(FACTS)
    other["memory_bytes"] -= 4096
    other["settings"] = {"sysctl vm/swappiness": "0", "irq_cpu 140": "3"}
    two = small_run(tmp_path / "2", record(), requirements=ONE, facts=other)
    found = gather([one.path, two.path])
    assert (len(found.targets[0].configurations), found.conclusion.word) == (1, "accepted")


def test_each_target_has_its_own_matrix(tmp_path: Path):
    windows = record("fail", "too late", subject=Subject("bench-1", "windows", "kernel", "two-way", "31"))
    found = gather([small_run(tmp_path, record(), windows, requirements=ONE).path])
    assert [(target.name, target.requirements[0].status) for target in found.targets] == [
        ("linux-rt", "pass"),
        ("windows", "fail"),
    ]
    assert "windows on bench-1: what it is was not recorded" in deviations(found)


def test_conditions_make_things_of_their_own_and_the_worst_decides(tmp_path: Path):
    loaded: Measurement = record("fail", "too late", conditions=Conditions("acceptance", "aligned-12", "cpu"))
    found = gather([small_run(tmp_path, record(), loaded, requirements=ONE).path])
    assert [each.status for each in row(found, "DAQ-031").results] == ["pass", "fail"]
    assert row(found, "DAQ-031").results[1].conditions == "profile acceptance, phase aligned-12, load cpu"
    assert row(found, "DAQ-031").status == "fail"


def test_evidence_of_other_bytes_than_judged_leaves_no_pass(tmp_path: Path):
    run = RunFolder.create(tmp_path, "bench-1", "acceptance", simulated=False)
    (run.evidence_folder("requirements") / "site.toml").write_text(ONE)
    answer = run.evidence_folder("daq_replay") / "answer.ndjson"
    answer.write_text("judged\n")
    run.append(record(run_id=run.run_id, evidence=(run.evidence(answer),)))
    answer.write_text("other\n")
    run.close()
    run.finalise()
    found = gather([run.path])
    assert row(found, "DAQ-031").status == "inconclusive"
    assert "evidence/daq_replay/answer.ndjson is not what it was judged from" in said(found)


def test_runs_that_cannot_be_relied_on_are_refused(tmp_path: Path):
    unfinished = make_run(tmp_path / "1", close=False)
    with pytest.raises(DossierError, match="did not come to its end") as caught:
        gather([unfinished.path])
    assert caught.value.exit_code == INTERRUPTED
    unfinished.close()
    with pytest.raises(DossierError, match=f"{SUMS} is missing") as caught:
        gather([unfinished.path])
    assert caught.value.exit_code == INTERRUPTED
    run = small_run(tmp_path / "2", record(), requirements=ONE)
    with pytest.raises(DossierError, match="the same run"):
        gather([run.path, run.path])
    with pytest.raises(DossierError, match="no run"):
        gather([])
    answer = run.path / "evidence" / "daq_replay" / "answer.ndjson"
    answer.write_bytes(b"{}\n")
    with pytest.raises(DossierError, match=r"answer\.ndjson: changed since the run was finalised") as caught:
        gather([run.path])
    assert caught.value.exit_code == CHANGED


def test_the_id_follows_from_everything_that_went_in(tmp_path: Path):
    run = small_run(tmp_path, record(), requirements=ONE)
    plain = gather([run.path])
    assert plain.id.startswith("BD-")
    assert gather([run.path], NOTHING_ASKED).id == plain.id
    others = [asked(tmp_path, title="T"), asked(tmp_path, operator="O"), asked(tmp_path, date="2100-01-01")]
    assert len({plain.id, *(gather([run.path], each).id for each in others)}) == 4


def test_a_tree_without_a_commit_is_named_by_version_and_files(tmp_path: Path):
    run = small_run(tmp_path, record(), requirements=ONE, commit=None, source="0.1.0, files of SHA-256 00ff")
    said = "commit of the suites: not recorded; version and files: 0.1.0, files of SHA-256 00ff"
    assert said in deviations(gather([run.path]))
