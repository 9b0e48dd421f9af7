# SPDX-License-Identifier: Apache-2.0
"""A waiver hits what it names and nothing else: one run by its id, one target, one stack, after the fact."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from reports.__main__ import main
from reports.dossier.errors import DossierError
from reports.dossier.model import to_dossier_bytes
from reports.dossier.verify import differences
from reports.record.measurement import Subject
from tests.reports.dossier.sample import (
    asked,
    conceding,
    gather,
    record,
    requirements_text,
    small_run,
    waiver,
)
from tests.reports.dossier.test_gather import row

DAY = datetime.timedelta(days=1)
ONE = requirements_text("DAQ-031")
TWO = requirements_text("DAQ-031", "DAQ-032")
Said = pytest.CaptureFixture[str]


def test_a_folder_with_the_name_of_another_run_is_not_hit(tmp_path: Path):
    """The waiver is of a run that passed; the folder of one that failed was given its id as a name."""
    passed = small_run(tmp_path / "1", record(), requirements=ONE)
    failed = small_run(tmp_path / "2", record("fail", "too late"), requirements=ONE)
    renamed = failed.path.rename(tmp_path / "2" / passed.run_id)
    found = gather([passed.path, renamed], asked(tmp_path, waiver(run=passed.run_id)))
    assert row(found, "DAQ-031").status == "fail"
    assert found.waivers[0].run == passed.run_id


def test_a_run_is_named_by_its_id(tmp_path: Path):
    run = small_run(tmp_path, record("fail", "too late"), record(), requirements=ONE)
    by_folder = asked(tmp_path, waiver(requirement="DAQ-031", run=run.path.name, attempt=1))
    with pytest.raises(DossierError, match=rf"waiver\[1\].run: .* is not known; there are: {run.run_id}"):
        gather([run.path], by_folder)


def test_a_concession_of_one_target_accepts_nothing_on_another(tmp_path: Path):
    other = record(requirement="DAQ-032", subject=Subject("bench-1", "linux-rt", "kernel", stream="32"))
    failed = [
        record("fail", "too late", subject=Subject("bench-1", target, "kernel", stream="31"))
        for target in ("linux-rt", "windows")
    ]
    run = small_run(tmp_path, other, *failed, requirements=TWO)
    found = gather([run.path], asked(tmp_path, conceding("DAQ-031")))
    assert [
        (target.name, each.waived)
        for target in found.targets
        for each in target.requirements
        if each.id == "DAQ-031"
    ] == [("linux-rt", "W-1"), ("windows", "")]
    assert found.waivers[0].effect == "accepted on linux-rt on bench-1 although fail"


def test_a_concession_of_one_stack_accepts_nothing_of_another(tmp_path: Path):
    other = record(requirement="DAQ-032", subject=Subject("bench-1", "linux-rt", "kernel", stream="32"))
    failed = [
        record("fail", "too late", subject=Subject("bench-1", "linux-rt", stack, stream="31"))
        for stack in ("kernel", "rtdip")
    ]
    run = small_run(tmp_path, other, *failed, requirements=TWO)
    found = gather([run.path], asked(tmp_path, conceding("DAQ-031")))
    assert (row(found, "DAQ-031").waived, found.conclusion.word) == ("", "not accepted")
    assert "no effect" in found.waivers[0].effect
    both = conceding("DAQ-031") + conceding("DAQ-031", name="W-2", stack="rtdip")
    found = gather([run.path], asked(tmp_path, both))
    assert (row(found, "DAQ-031").waived, found.conclusion.word) == ("W-1, W-2", "accepted with waivers")
    assert {each.effect for each in found.waivers} == {"accepted on linux-rt on bench-1 although fail"}


def test_a_fail_beside_what_is_untested_on_hardware_is_not_accepted(tmp_path: Path):
    other = record(requirement="DAQ-032", subject=Subject("bench-1", "linux-rt", "kernel", stream="32"))
    loose = record(simulated=True, subject=Subject("bench-1", "linux-rt", "rtdip", stream="31"))
    real = small_run(tmp_path / "1", other, record("fail", "too late"), requirements=TWO)
    simulated = small_run(tmp_path / "2", loose, simulated=True, requirements=TWO)
    both = conceding("DAQ-031") + conceding("DAQ-031", name="W-2", stack="rtdip")
    found = gather([real.path, simulated.path], asked(tmp_path, both))
    assert (row(found, "DAQ-031").status, row(found, "DAQ-031").waived) == ("fail", "")
    assert found.conclusion.word == "not accepted"


def test_a_waiver_from_before_its_run_is_refused(tmp_path: Path):
    run = small_run(tmp_path, record("fail", "too late"), record(), requirements=ONE)
    before = datetime.date.fromisoformat(run.manifest.start_utc[:10]) - DAY
    for text in (waiver(before, run=run.run_id), conceding("DAQ-031").replace("date", f"date = {before} #")):
        with pytest.raises(DossierError, match=rf"waiver\[1\].date: {before} is before"):
            gather([run.path], asked(tmp_path, text))


def test_a_dossier_from_before_its_runs_is_refused(tmp_path: Path):
    """Its date is what waivers expire against."""
    run = small_run(tmp_path, record(), requirements=ONE)
    with pytest.raises(DossierError, match="date: 2020-01-01 is before"):
        gather([run.path], asked(tmp_path, date="2020-01-01"))


def test_a_waiver_from_the_future_is_refused_and_does_not_verify(tmp_path: Path, capsys: Said):
    run = small_run(tmp_path, record("fail", "too late"), record(), requirements=ONE)
    day = datetime.datetime.now(datetime.UTC).date() + 2 * DAY
    made = asked(tmp_path, waiver(day, run=run.run_id))
    output = tmp_path / "dossier.json"
    named = ["--waivers", str(tmp_path / "waivers.toml"), "--output", str(output)]
    assert main(["dossier", str(run.path), *named]) == 2
    assert f"{day} is in the future" in capsys.readouterr().err
    output.write_bytes(to_dossier_bytes(gather([run.path], made)))
    (problem,) = differences(output, [run.path])
    assert f"{day} is in the future" in problem
