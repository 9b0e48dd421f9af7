# SPDX-License-Identifier: Apache-2.0
"""Provisioning of a target that is played by its answers: the order of the verbs, and what is an error."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from hw.bench import load_bench
from hw.errors import BenchError, ConfigError
from hw.protocols import CommandResult, Node
from hw.provisioning import Provisioner, ProvisioningRecipe, load_recipe
from reports.rejudge.applied import applied_discrepancies

SETTING = "sysctl vm/swappiness"
UNTOUCHED, WANTED = "60", "10"


class _PlayedNode:
    """A node with one setting and its undo file, which answers as the script does."""

    name = "target"

    def __init__(self) -> None:
        self.value = UNTOUCHED
        self.undo: list[str] = []
        self.stays_at = ""
        """What it holds whatever is set; empty: it takes what is set."""
        self.put_back = ""
        """What a daemon of its own sets soon after `apply`; empty: it has none."""
        self.verbs: list[str] = []

    def put(self, local: Path, remote: str) -> None:
        """Take a file."""

    def run(self, argv: Sequence[str], timeout_s: float = 30.0, check: bool = True) -> CommandResult:
        """Do what a verb says."""
        assert timeout_s > 0
        assert not check
        verb = argv[-1]
        self.verbs.append(verb)
        if verb == "facts":
            return CommandResult(
                tuple(argv), 0, json.dumps({"type": "facts", "settings": {SETTING: self.value}}), ""
            )
        found, value = self.value, self.undo[0] if verb == "restore" and self.undo else self.value
        if verb == "apply":
            self.undo.append(found)
            value = WANTED
        elif verb == "restore":
            self.undo.clear()
        self.value = self.stays_at or value
        is_wrong = verb != "restore" and self.value != WANTED
        item: dict[str, Any] = {
            "type": "item",
            "item": SETTING,
            "status": "wrong" if is_wrong else "ok",
            "wanted": WANTED,
            "found": found,
            "changed": self.value != found,
            "note": "it did not stay" if is_wrong else "",
            "ok": not is_wrong,
            "why": "a test",
        }
        if verb == "apply" and self.put_back:
            self.value = self.put_back
        summary = {
            "type": "summary",
            "verb": verb,
            "items": 1,
            "ok": int(not is_wrong),
            "wrong": int(is_wrong),
        }
        summary |= {"not_applicable": 0, "changed": int(item["changed"])}
        text = f"{json.dumps(item)}\n{json.dumps(summary)}\n"
        return CommandResult(tuple(argv), int(is_wrong), text, "")


@pytest.fixture
def node() -> _PlayedNode:
    """Return a node as it is found."""
    return _PlayedNode()


def _provisioner(repository: Path, node: _PlayedNode) -> Provisioner:
    spec = load_bench(repository / "hw" / "benches" / "virtual.yaml")
    return Provisioner(cast("Node", node), spec.targets["linux-rt"])


def _facts(folder: Path, name: str) -> str:
    return str(json.loads((folder / name).read_text())["settings"][SETTING])


def test_facts_as_found_are_those_of_a_target_that_a_killed_run_has_left(
    repository: Path, tmp_path: Path, node: _PlayedNode
) -> None:
    _provisioner(repository, node).apply(tmp_path / "killed.ndjson")
    assert (node.value, node.undo) == (WANTED, [UNTOUCHED])
    found = _provisioner(repository, node).prepare(tmp_path)
    assert _facts(tmp_path, "facts-before.json") == UNTOUCHED
    assert _facts(tmp_path, "facts-after.json") == WANTED
    assert (found.changed, found.remarks) == (1, [])


def test_a_target_that_was_provisioned_is_given_back(
    repository: Path, tmp_path: Path, node: _PlayedNode
) -> None:
    provisioner = _provisioner(repository, node)
    provisioner.prepare(tmp_path)
    assert (provisioner.restore(), node.value) == (1, UNTOUCHED)
    assert (provisioner.restore(), node.value) == (0, UNTOUCHED)


def test_a_setting_that_does_not_stay_is_an_error_though_nothing_was_changed(
    repository: Path, tmp_path: Path, node: _PlayedNode
) -> None:
    node.stays_at = UNTOUCHED
    with pytest.raises(BenchError, match=f"{SETTING}: wanted {WANTED}, found {UNTOUCHED} it did not stay"):
        _provisioner(repository, node).apply(tmp_path / "apply.ndjson")
    assert '"changed": false' in (tmp_path / "apply.ndjson").read_text()


@pytest.mark.parametrize("is_second", [False, True])
@pytest.mark.parametrize("value", [UNTOUCHED, "30"])
def test_a_setting_that_a_daemon_of_the_target_puts_back_is_an_error_and_no_contradiction(
    repository: Path, tmp_path: Path, node: _PlayedNode, is_second: bool, value: str
) -> None:
    folder = tmp_path / "evidence" / "provisioning" / "linux-rt"
    folder.mkdir(parents=True)
    provisioner = _provisioner(repository, node)
    if is_second:
        provisioner.prepare(folder)
    node.put_back = value
    with pytest.raises(BenchError, match=f"{SETTING}: wanted {WANTED}, and is {value} after it was"):
        provisioner.prepare(folder)
    assert _facts(folder, "failed/facts-after.json") == value
    assert (folder / "facts-after.json").exists() == is_second
    assert applied_discrepancies(tmp_path, []) == ([], 0)
    node.put_back = ""
    provisioner.prepare(folder)
    assert {path.name for path in folder.iterdir()} == {
        "facts-before.json",
        "apply.ndjson",
        "facts-after.json",
    }


def test_how_windows_is_provisioned(repository: Path) -> None:
    recipe = load_recipe(repository / "targets/windows")
    assert recipe.command == (f"{recipe.folder}/provision.cmd",)
    assert (recipe.tools, recipe.machine) == (("bw-provision",), "x86_64-windows")


def test_a_kind_without_a_word_about_it_is_provisioned_as_linux(tmp_path: Path) -> None:
    assert load_recipe(tmp_path) == ProvisioningRecipe()
    (tmp_path / "provision.toml").write_text('folder = "/x"\ncommand = "/x/go"\ncolour = "red"\n')
    with pytest.raises(
        ConfigError, match="colour: unknown key; known here: command, files_besides, folder, machine, tools"
    ):
        load_recipe(tmp_path)
