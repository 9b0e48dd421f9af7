# SPDX-License-Identifier: Apache-2.0
"""Provisioning of a target: the scripts of its folder under `targets/`, run on it.

The old value of every setting is written to an undo file on the target before it is changed. What a killed
run has left there is given back before the next one looks at the target, so facts *as found* are always those
of the untouched machine.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hw.answers import answers_of, json_line
from hw.bench import TargetSpec
from hw.errors import BenchError, ConfigError
from hw.fields import Fields
from hw.protocols import Node
from hw.provisioned_facts import set_by_others
from hw.toml_file import read_toml
from hw.tools import local_tool

TARGETS = Path(__file__).resolve().parent.parent / "targets"
RECIPE_FILE = "provision.toml"
SCRIPTS = "provision"
"""Folder of a kind with what is brought to its targets."""
ITEM_FIELDS = ("item", "status", "changed")
BEFORE, ACCOUNT, AFTER = "facts-before.json", "apply.ndjson", "facts-after.json"
FAILED = "failed"
"""Folder that has these files instead where a target could not be provisioned."""


@dataclass(frozen=True)
class ProvisioningRecipe:
    """How a kind's `provision/` is run on its targets: `targets/KIND/provision.toml`, or what Linux needs."""

    folder: str = "/run/benchwright/provision"
    """Folder on the target that the files are copied to."""
    command: tuple[str, ...] = ("sh", "/run/benchwright/provision/provision.sh")
    """What is called there; `--interface NAME VERB` follows."""
    tools: tuple[str, ...] = ()
    """Native tools that go into the same folder."""
    machine: str = ""
    """Machine that they are built for, by a key of `hw.tools.BUILDS`."""
    files_besides: tuple[str, ...] = ()
    """Files of other kinds that go into the same folder, by their path from `provision/`."""


def load_recipe(kind_folder: Path) -> ProvisioningRecipe:
    """Read how a kind is provisioned.

    Raises:
        ConfigError: Names file, key and what is allowed.
    """
    path = kind_folder / RECIPE_FILE
    if not path.exists():
        return ProvisioningRecipe()
    fields = Fields(read_toml(path), str(path), "")
    recipe = ProvisioningRecipe(
        fields.text("folder"),
        fields.words("command"),
        fields.words("tools", ""),
        fields.text("machine", ""),
        fields.words("files_besides", ""),
    )
    fields.finish()
    for name in recipe.files_besides:
        if not (kind_folder / SCRIPTS / name).is_file():
            raise ConfigError(f"{path}: files_besides: {name!r}: there is no such file beside {SCRIPTS}/")
    return recipe


@dataclass(frozen=True)
class ProvisioningResult:
    """What provisioning found and changed."""

    facts: dict[str, Any]
    """Facts after the settings were applied."""
    changed: int
    remarks: list[str]
    """One line for each setting that does not apply to this machine."""


class Provisioner:
    """Prepares one target and gives it back."""

    def __init__(self, node: Node, target: TargetSpec) -> None:
        """Describe the work; nothing is done yet."""
        self._node = node
        self._target = target
        self._recipe = load_recipe(TARGETS / target.provisioning)
        self._copied = False

    def prepare(self, folder: Path) -> ProvisioningResult:
        """Apply the settings of the target's kind and check them.

        Args:
            folder: Facts before and after, and every item, go here as evidence; to its `failed/` where this
                raises, beside what an earlier provisioning has left.

        Raises:
            BenchError: The target cannot be reached, a setting could not be made, or something else on the
                target sets one as well; the text names it.
        """
        failed = folder / FAILED
        shutil.rmtree(failed, ignore_errors=True)
        failed.mkdir()
        self._verb("restore")
        before = self._facts()
        (failed / BEFORE).write_text(json.dumps(before, indent=1) + "\n")
        items = self.apply(failed / ACCOUNT)
        facts = self._facts()
        (failed / AFTER).write_text(json.dumps(facts, indent=1) + "\n")
        if others := list(set_by_others(items, before, facts)):
            raise BenchError(
                f"{self._node.name}: target {self._target.kind} does not stay as it is provisioned, something"
                f" else on it sets the same: {'; '.join(others)}"
            )
        for name in (BEFORE, ACCOUNT, AFTER):
            (failed / name).replace(folder / name)
        failed.rmdir()
        absent = [
            f"{item['item']}: not applicable: {item['note']}"
            for item in items
            if item["status"] == "not applicable"
        ]
        return ProvisioningResult(facts, sum(bool(item["changed"]) for item in items), absent)

    def apply(self, evidence: Path) -> list[dict[str, Any]]:
        """Apply the settings; return every item.

        Args:
            evidence: File for the answer.

        Raises:
            BenchError: The target cannot be reached, or a setting could not be made; the text names it.
        """
        items = self._items("apply", evidence)
        wrong = [item for item in items if item["status"] == "wrong"]
        if wrong:
            named = "; ".join(
                f"{item['item']}: wanted {item['wanted']}, found {item['found']} {item['note']}".strip()
                for item in wrong
            )
            raise BenchError(f"{self._node.name}: target {self._target.kind} cannot be provisioned: {named}")
        return items

    def check(self) -> list[dict[str, Any]]:
        """Return the settings that are not as wanted; changes nothing."""
        return [
            item for item in self._parse(self._verb("check", ok_codes=(0, 1))) if item["status"] == "wrong"
        ]

    def facts(self) -> dict[str, Any]:
        """Return what the target is, as read from it now."""
        return self._facts()

    def facts_text(self) -> str:
        """Return the same as the target writes it: equal texts, equal machine."""
        return self._verb("facts")

    def restore(self) -> int:
        """Give back every setting that was changed, and return how many; harmless when none was.

        Raises:
            BenchError: One could not be given back; the text names it.
        """
        return sum(bool(item["changed"]) for item in self._parse(self._verb("restore")))

    def _facts(self) -> dict[str, Any]:
        said = self._verb("facts")
        facts = json_line(said)
        if facts is None:
            raise BenchError(f"{self._node.name}: facts: {said[:60]!r}: invalid JSON")
        return {key: value for key, value in facts.items() if key != "type"}

    def _items(self, verb: str, evidence: Path) -> list[dict[str, Any]]:
        text = self._verb(verb, ok_codes=(0, 1))
        evidence.write_text(text)
        return self._parse(text)

    def _parse(self, text: str) -> list[dict[str, Any]]:
        return answers_of(text, "item", ITEM_FIELDS, f"{self._node.name}: provisioning")

    def _verb(self, verb: str, ok_codes: tuple[int, ...] = (0,)) -> str:
        self._copy()
        argv = [*self._recipe.command, "--interface", self._target.test_interface, verb]
        done = self._node.run(argv, timeout_s=60.0, check=False)
        if done.exit_code not in ok_codes:
            detail = (done.stderr.strip() or done.stdout.strip())[-500:]
            raise BenchError(
                f"{self._node.name}: target {self._target.kind}: provisioning `{verb}`: exit code"
                f" {done.exit_code}: {detail}"
            )
        return done.stdout

    def _copy(self) -> None:
        if self._copied:
            return
        folder = TARGETS / self._target.provisioning / SCRIPTS
        if not folder.is_dir():
            raise BenchError(f"target {self._target.kind}: no folder {folder.relative_to(TARGETS.parent)}")
        tools = [local_tool(name, self._recipe.machine) for name in self._recipe.tools]
        besides = [folder / name for name in self._recipe.files_besides]
        for file in (*sorted(folder.iterdir()), *besides, *tools):
            self._node.put(file, f"{self._recipe.folder}/{file.name}")
        self._copied = True
