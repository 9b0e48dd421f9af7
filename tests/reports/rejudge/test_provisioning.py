# SPDX-License-Identifier: Apache-2.0
"""What provisioning leaves different is counted again alike, and what was changed afterwards is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reports.record.measurement import Limit
from reports.rejudge.provisioning import provisioning_discrepancies
from reports.run.folder import RunFolder
from tests.reports.rejudge.provisioning_run import METHODS, record_of, records_of_trials
from tests.resources.provisioning.played import PlayedTarget, played_target, trials_of

Json = dict[str, Any]


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> PlayedTarget:
    return played_target(monkeypatch)


def folder_of(run: RunFolder) -> Path:
    return run.path / "evidence" / "provisioning" / "linux-rt"


def records_of(run: RunFolder, target: PlayedTarget, **options: int) -> dict[str, Json]:
    """Let the bench try the target, and return a record of each event."""
    records = [record.to_json() for record in records_of_trials(run, target, **options)]
    return dict(zip(METHODS, records, strict=True))


def _nothing(_target: PlayedTarget) -> None:
    """Leave it as it is."""


def _sets_again(target: PlayedTarget) -> None:
    target.unstable = ("governor", "rmem_max")


def _forgets(target: PlayedTarget) -> None:
    target.forgotten = ("governor",)


def _wears(target: PlayedTarget) -> None:
    target.worn = {"nics": [{"name": "eth0", "queues": 2, "flags": ["up", "running"]}], "cpu": {}}


def _reorders(target: PlayedTarget) -> None:
    target.is_reordered = True


FAULTS: list[tuple[Callable[[PlayedTarget], None], dict[str, int]]] = [
    (_nothing, {"twice": 0, "restore": 0, "power-cut": 0, "restart": 0}),
    (_sets_again, {"twice": 2, "restore": 0}),
    (_forgets, {"twice": 0, "restore": 1}),
    # queues, flags (empty before, two now) and cpu; found, and provisioned again
    (_wears, {"restore": 0, "power-cut": 10, "restart": 10}),
]


@pytest.mark.parametrize(("fault", "counts"), FAULTS)
def test_what_differs_is_counted_alike(
    run: RunFolder, target: PlayedTarget, fault: Callable[[PlayedTarget], None], counts: dict[str, int]
) -> None:
    fault(target)
    records = records_of(run, target)
    assert {method: records[method]["value"] for method in counts} == counts
    for method, value in counts.items():
        assert records[method]["outcome"] == ("fail" if value else "pass")
    assert provisioning_discrepancies(run.path, list(records.values())) == ([], len(METHODS))


def test_equal_facts_in_other_bytes_are_one_difference(run: RunFolder, target: PlayedTarget) -> None:
    folder = run.evidence_folder("provisioning", "linux-rt")
    trials, _ = trials_of(target, folder)
    _reorders(target)
    _, restored = trials.provision_and_restore(1)
    record = record_of(run, "restore", restored, Limit(0, None, "a test"), 1).to_json()
    assert (record["value"], record["outcome"]) == (1, "fail")
    assert provisioning_discrepancies(run.path, [record]) == ([], 1)


def test_fewer_repetitions_than_asked_for_are_judged_alike(run: RunFolder, target: PlayedTarget) -> None:
    records = records_of(run, target, repeats=1)
    assert records["twice"]["outcome"] == "inconclusive"
    assert provisioning_discrepancies(run.path, list(records.values())) == ([], len(METHODS))
    problems, _ = provisioning_discrepancies(run.path, [records["twice"] | {"outcome": "pass"}])
    assert problems == ["PROV-TWICE: twice: pass, its repetitions come to inconclusive"]


def test_what_may_differ_is_allowed(run: RunFolder, target: PlayedTarget) -> None:
    _sets_again(target)
    records = records_of(run, target, upper_facts=3)
    assert records["twice"]["outcome"] == "pass"
    assert provisioning_discrepancies(run.path, list(records.values())) == ([], len(METHODS))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"value": 3}, "value is 3, the facts say 0"),
        ({"n": 7}, "n is 7, the facts say"),
        ({"outcome": "fail"}, "fail, its repetitions come to pass"),
        ({"unit": "ns"}, "unit is ns, must be facts"),
        ({"lost": 1}, "1 lost, 0 allowed"),
        (
            {"uncertainty": {"expanded": 1, "parts": [{"name": "x", "kind": "bound", "value": 1}]}},
            "parts of U",
        ),
    ],
)
def test_a_changed_record_is_named(
    run: RunFolder, target: PlayedTarget, method: str, changes: Json, said: str
) -> None:
    problems, count = provisioning_discrepancies(run.path, [records_of(run, target)[method] | changes])
    assert count == 1
    assert any(said in problem for problem in problems), problems


def test_a_record_of_another_target_or_event_is_named(run: RunFolder, target: PlayedTarget) -> None:
    record = records_of(run, target)["restore"]
    other = record | {"subject": {"target": "windows", "method": "restore"}}
    problems, _ = provisioning_discrepancies(run.path, [other])
    assert problems == ["PROV-RESTORE: restore: target is windows, its facts are of linux-rt"]
    other = record | {"subject": {"target": "linux-rt", "method": "twice"}}
    problems, _ = provisioning_discrepancies(run.path, [other])
    assert any("its evidence has repetitions [], its folder [1, 2]" in problem for problem in problems)
    other = record | {"subject": {"target": "linux-rt", "method": "something new"}}
    assert provisioning_discrepancies(run.path, [other]) == ([], 0)


@pytest.mark.parametrize(
    ("method", "file", "old", "new"),
    [
        ("twice", "facts-provisioned-again-2.json", '"queues": 1', '"queues": 2'),
        ("twice", "facts-provisioned-1.json", '"queues": 1', '"queues": 2'),
        ("twice", "apply-again-1.ndjson", '"changed": false', '"changed": true'),
        ("restore", "facts-restored-1.json", "eth0", "eth1"),
        ("restore", "facts-restored-2.json", "{", " {"),
        ("restore", "facts-untouched.json", '"flags": []', '"flags": null'),
        ("restore", "apply-2.ndjson", '"changed": true', '"changed": false'),
        ("power-cut", "power-cut-1-facts-found.json", "powersave", "performance"),
        ("power-cut", "power-cut-1-facts-provisioned.json", "powersave", "performance"),
        ("power-cut", "facts-provisioned-1.json", "eth0", "eth1"),
        ("restart", "restart-1-facts-found.json", '"eth0"', "0"),
        ("restart", "restart-2-facts-provisioned.json", '"queues": 1', '"queues": 1.0'),
    ],
)
def test_facts_that_were_changed_are_named(
    run: RunFolder, target: PlayedTarget, method: str, file: str, old: str, new: str
) -> None:
    record = records_of(run, target)[method]
    path = folder_of(run) / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    problems, count = provisioning_discrepancies(run.path, [record])
    assert count == 1
    assert problems


@pytest.mark.parametrize("key", ["memory_bytes", "interrupts"])
def test_what_a_start_changes_by_itself_counts_only_where_there_was_none(
    run: RunFolder, target: PlayedTarget, key: str
) -> None:
    records = records_of(run, target)
    for method, file in (("power-cut", "power-cut-1-facts-found.json"), ("restore", "facts-restored-1.json")):
        path = folder_of(run) / file
        path.write_text(json.dumps(json.loads(path.read_text()) | {key: 7}))
        problems, _ = provisioning_discrepancies(run.path, [records[method]])
        assert bool(problems) == (method == "restore")


def test_a_repetition_that_is_kept_back_is_named(run: RunFolder, target: PlayedTarget) -> None:
    record = records_of(run, target)["restore"]
    record["evidence"] = [each for each in record["evidence"] if "restored-2" not in each["path"]]
    problems, _ = provisioning_discrepancies(run.path, [record | {"n": 1, "n_required": 1}])
    assert problems == ["PROV-RESTORE: restore: its evidence has repetitions [1], its folder [1, 2]"]


@pytest.mark.parametrize(
    ("method", "file", "text"),
    [
        ("twice", "apply-again-1.ndjson", None),
        ("twice", "facts-provisioned-2.json", None),
        ("restore", "facts-untouched.json", None),
        ("restart", "restart-1-facts-provisioned.json", None),
        ("power-cut", "power-cut-1-facts-found.json", "[1, 2"),
    ],
)
def test_what_is_missing_or_damaged_is_a_problem_and_no_traceback(
    run: RunFolder, target: PlayedTarget, method: str, file: str, text: str | None
) -> None:
    record = records_of(run, target)[method]
    path = folder_of(run) / file
    path.unlink() if text is None else path.write_text(text)
    problems, count = provisioning_discrepancies(run.path, [record])
    assert (len(problems), count) == (1, 0)
