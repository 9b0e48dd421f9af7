# SPDX-License-Identifier: Apache-2.0
"""What `apply` says of a setting, held against itself and the facts before and after."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.verdicts.bench_verify_fields import change_document
from hw.provisioned_facts import set_by_others
from reports.rejudge.applied import applied_discrepancies
from reports.rejudge.run import rejudge
from tests.reports.rejudge.field_campaign import unnamed_changes
from tests.reports.rejudge.provisioning_run import SETTINGS, TARGET, make_provisioned_run, write_provisioning
from tests.resources.provisioning.played import played_target

Json = dict[str, Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a target that was provisioned."""
    folder = tmp_path / "evidence" / "provisioning" / TARGET
    folder.mkdir(parents=True)
    write_provisioning(folder)
    return folder


def said_of(folder: Path) -> list[str]:
    return applied_discrepancies(folder.parents[2], [])[0]


def item_number(folder: Path, name: str) -> int:
    lines = [json.loads(line) for line in (folder / "apply.ndjson").read_text().splitlines()]
    return next(number for number, line in enumerate(lines) if line.get("item") == name)


def change_item(folder: Path, name: str, key: str, value: Any) -> None:
    change_document(folder / "apply.ndjson", (key,), lambda _: value, item_number(folder, name))


def test_what_agrees_with_itself_has_no_discrepancy(folder: Path) -> None:
    assert said_of(folder) == []


@pytest.mark.parametrize(
    ("item", "key", "value", "said"),
    [
        ("sysctl vm/stat_interval", "found", "2", "found is '2', facts-before.json has '1'"),
        ("sysctl vm/stat_interval", "wanted", ">=11", "facts-after.json has '10'"),
        ("sysctl vm/stat_interval", "changed", False, "not as wanted, and changed is False"),
        ("sysctl net/core/busy_poll", "changed", True, "as wanted, and changed is True"),
        ("sysctl net/core/busy_poll", "status", "wrong", "ok of its summary is 12, its items come to 11"),
        ("sysctl net/core/busy_poll", "ok", 1, "ok, and ok is 1"),
        ("sysctl net/core/busy_poll", "item", "sysctl x", "sysctl net/core/busy_poll: not in the facts"),
        ("idle cpu0/state1", "found", "off", "as wanted, and changed is True"),
        ("governor all", "found", "powersave", "its note says"),
        ("tool ethtool", "found", "missing", "not as wanted"),
    ],
)
def test_a_changed_item_is_named(folder: Path, item: str, key: str, value: Any, said: str) -> None:
    change_item(folder, item, key, value)
    problems = said_of(folder)
    assert any(said in problem for problem in problems), problems


@pytest.mark.parametrize(
    ("way", "said"),
    [
        (("kernel", "release"), "kernel.release: facts-before.json has '6.12.57-rtx'"),
        (("nics", 0, "offloads", "rx-checksumming"), "control0.offloads.rx-checksumming"),
        (("settings", "sysctl net/core/busy_poll"), "found is '0', facts-before.json has '0x'"),
    ],
)
def test_changed_facts_before_are_named(folder: Path, way: tuple[str | int, ...], said: str) -> None:
    change_document(folder / "facts-before.json", way, lambda value: f"{value}x")
    problems = said_of(folder)
    assert any(said in problem for problem in problems), problems


def _balanced(folder: Path) -> None:
    """Let a balancer of interrupts, which is not stopped yet, move one."""
    change_item(folder, "irq_cpu 30", "found", "1")


def _reset_by_the_driver(folder: Path) -> None:
    """Let a driver set its coalescing anew when another setting of its card is changed."""
    change_item(folder, "coalesce test0/rx-usecs", "found", "8")


def _of_a_namespace(folder: Path) -> None:
    """Let the host go its own way, whose settings stay as they are; and its processor's frequency, too."""
    for when, value in (("before", "60"), ("after", "10")):
        file = folder / f"facts-{when}.json"
        facts = json.loads(file.read_text())
        facts["settings"] |= {"sysctl vm/swappiness": value, "idle cpu0/state2": value}
        facts["cpu"]["governor"] = value
        file.write_text(json.dumps(facts | {"shared_with_host": ["kernel", "processors"]}, indent=1) + "\n")
    note = "shared with the bench's host, where it is left as it is: 60"
    for key, value in (("item", "sysctl vm/swappiness"), ("note", note), ("found", "60"), ("wanted", "0")):
        change_document(folder / "apply.ndjson", (key,), lambda _, new=value: new, 2)


def _cut_off(folder: Path) -> None:
    """Let a trial cut the power while settings were applied."""
    item = (folder / "apply.ndjson").read_text().splitlines()[0]
    (folder / "power-cut-2-apply.ndjson").write_text(f"{item}\n{item[:20]}")


@pytest.mark.parametrize("happened", [_balanced, _reset_by_the_driver, _of_a_namespace, _cut_off])
def test_what_happens_to_an_honest_target_is_not_named(
    folder: Path, happened: Callable[[Path], None]
) -> None:
    happened(folder)
    assert said_of(folder) == []


VALUES = ("0", "1", "9", "10", "10000", "off", "3", "fifo:51", "fifo:50", "on", "inactive", None)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", [*(row[0] for row in SETTINGS), "sysctl new", "governor all"])
def test_provisioning_ends_where_its_facts_would_contradict_it(folder: Path, name: str, when: str) -> None:
    file = folder / f"facts-{when}.json"
    sound = json.loads(file.read_text())
    for value in VALUES:
        facts = copy.deepcopy(sound)
        facts["settings"].pop(name, None)
        facts["settings"] |= {} if value is None else {name: value}
        file.write_text(json.dumps(facts, indent=1) + "\n")
        assert ends_provisioning(folder) == bool(said_of(folder)), value


@pytest.mark.parametrize(
    "way",
    [
        ("hostname",),
        ("kernel", "release"),
        ("cpu", "online"),
        ("cpu", "governor"),
        ("versions", "libc"),
        ("memory_bytes",),
        ("nics", 0, "offloads", "generic-receive-offload"),
        ("nics", 0, "mac"),
        ("nics", 0, "mtu"),
        ("nics", 1, "offloads", "rx-checksumming"),
        ("nics", 1, "driver", "version"),
    ],
)
def test_provisioning_ends_where_its_machine_would_be_another(
    folder: Path, way: tuple[str | int, ...]
) -> None:
    change_document(folder / "facts-after.json", way, lambda value: f"{value}x")
    assert ends_provisioning(folder) == bool(said_of(folder))


def ends_provisioning(folder: Path) -> bool:
    """Say whether `Provisioner.prepare` takes these facts for those of a target that others set as well."""
    items = [json.loads(line) for line in (folder / "apply.ndjson").read_text().splitlines()[:-1]]
    facts = [json.loads((folder / f"facts-{when}.json").read_text()) for when in ("before", "after")]
    return bool(list(set_by_others(items, *facts)))


def test_a_provisioning_that_failed_contradicts_nothing(folder: Path) -> None:
    shutil.copytree(folder, folder / "failed")
    change_document(
        folder / "failed" / "facts-after.json", ("settings", "sysctl vm/stat_interval"), lambda _: "1"
    )
    assert said_of(folder) == []


def test_an_account_that_was_cut_short_is_named(folder: Path) -> None:
    file = folder / "apply.ndjson"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
    assert any("it has no summary" in problem for problem in said_of(folder))


def test_changes_are_named_where_other_evidence_holds_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_provisioned_run(tmp_path / "results", played_target(monkeypatch)).path
    assert rejudge(run).problems == ()
    unnamed, count = unnamed_changes(run, tmp_path / "work", "provisioning")
    assert len(unnamed) <= 0.1 * count, unnamed
    assert count > 100
