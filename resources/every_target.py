# SPDX-License-Identifier: Apache-2.0
"""The same suites for several targets in one run: a pre-run modifier of Robot Framework.

    robot --prerunmodifier resources.every_target.EveryTarget:linux-rt:windows robot/

Each target gets a copy of all suites, in a suite that bears its name, with `${TARGET}` set. A target kind
that takes part in some suites only, or needs other variables for them (limits, a pattern that it can take),
says so in `targets/KIND/suites.toml`:

    schema = "benchwright.suites/1"
    folders = ["daq_replay", "clock_sync"]     # below robot/; left out: all
    without = ["daq_producer"]                 # of these; left out: none

    [variables]                                # without ${}; left out: none
    REQUIREMENTS = "robot/requirements/daq12.toml"

    [profiles.ci]                              # of these folders, those that a profile has no time for
    without = ["clock_sync"]
    without_tags = "table-2 mid-run"           # tests with one of these tags; left out: none

A test of one clock stack bears the tag `stack:NAME`. Where the kind has `clock/stacks.toml`, it is asked for
those stacks alone; a target with another kind's provisioning (`raspberry-pi@linux-rt`) for that kind's.

A variable of the command line (`--variable TARGET:…`) goes before all of these, for every target.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from hw.errors import ConfigError
from hw.fields import Fields
from hw.toml_file import read_toml
from resources.clocks.settings import STACKS, stack_names

SCHEMA = "benchwright.suites/1"
SUITES_FILE = "suites.toml"
STACK_TAG = "stack:"
PROFILE = "profile="
TARGETS = Path(__file__).resolve().parent.parent / "targets"
SUITES = TARGETS.parent / "robot"

_api: Any = import_module("robot.api")  # no types of its own


@dataclass(frozen=True)
class KindSuites:
    """Which suites a target kind takes part in; `folders` None: all."""

    folders: tuple[str, ...] | None = None
    variables: dict[str, str] = field(default_factory=dict[str, str])
    stacks: tuple[str, ...] | None = None
    """Its clock stacks; None: it does not say."""
    without_tags: tuple[str, ...] = ()
    """Tests with one of these tags are left out."""


def load_kind_suites(kind_folder: Path, provisioning: str = "", profile: str = "") -> KindSuites:
    """Read `suites.toml` of a target kind; without the file it takes part in everything.

    Args:
        kind_folder: `targets/KIND`.
        provisioning: The kind beside it whose provisioning and clock stacks the target has; empty: its own.
        profile: What its table under `profiles` leaves out is left out.

    Raises:
        ConfigError: Names file, key and what is allowed.
    """
    path = kind_folder / SUITES_FILE
    of_clocks = kind_folder.parent / (provisioning or kind_folder.name) / STACKS
    stacks = stack_names(of_clocks) if of_clocks.exists() else None
    if not path.exists():
        return KindSuites(stacks=stacks)
    table = Fields(read_toml(path), str(path), "")
    table.text("schema", choices=(SCHEMA,))
    known = sorted(each.name for each in SUITES.iterdir() if any(each.glob("*.robot")))
    folders = table.texts("folders", choices=known) if table.has("folders") else None
    without = set(table.texts("without", choices=known) if table.has("without") else ())
    tags: tuple[str, ...] = ()
    for name, of_profile in table.table_of("profiles", optional=True).items():
        left_out = of_profile.texts("without", choices=known)
        left_out_tags = of_profile.words("without_tags", "")
        of_profile.finish()
        without |= set(left_out) if name == profile else set()
        tags += left_out_tags if name == profile else ()
    if without:
        folders = tuple(name for name in folders or known if name not in without)
    variables = table.texts_of("variables")
    if "TARGET" in variables:
        raise ConfigError(f"{path}: variables.TARGET: is the name of the target; leave it out")
    table.finish()
    return KindSuites(folders, variables, stacks, tags)


class EveryTarget(_api.SuiteVisitor):  # type: ignore[misc]
    """Give each target a copy of the suites; one target alone gets them as they are."""

    def __init__(self, *targets: str) -> None:
        """Remember the targets; a kind's file is read at once, so that an error in it ends Robot early.

        Args:
            targets: `NAME`, or `NAME@KIND` with the kind that provisions it; one may be `profile=NAME`.
        """
        profile = "".join(each.removeprefix(PROFILE) for each in targets if each.startswith(PROFILE))
        named = [each.partition("@") for each in targets if not each.startswith(PROFILE)]
        if not named:
            raise ConfigError("EveryTarget: needs the name of one target at least")
        self._kinds = {name: load_kind_suites(TARGETS / name, other, profile) for name, _, other in named}

    def visit_suite(self, suite: Any) -> None:
        """Change the outermost suite; it is the only one that is visited."""
        if len(self._kinds) == 1:
            [(target, kind)] = self._kinds.items()
            _keep(suite, kind)
            _set_variables(suite, target, kind)
            return
        copies: list[Any] = []
        for target, kind in self._kinds.items():
            copy = suite.deepcopy(name=target)
            _keep(copy, kind)
            _set_variables(copy, target, kind)
            if copy.has_tests:
                copies.append(copy)
        suite.name = "Qualification"
        suite.tests.clear()
        suite.suites.clear()
        suite.setup = suite.teardown = None
        suite.resource.imports.clear()
        suite.suites.extend(copies)


def _keep(suite: Any, kind: KindSuites) -> None:
    """Take out what a kind takes no part in: suites by the folder of their files, tests by clock stack."""
    _keep_folders(suite, kind)
    if kind.without_tags:
        _drop_tags(suite, set(kind.without_tags))
        suite.remove_empty_suites()
    if kind.stacks is not None:
        _keep_stacks(suite, [f"{STACK_TAG}{name}" for name in kind.stacks])
        suite.remove_empty_suites()


def _drop_tags(suite: Any, tags: set[str]) -> None:
    for child in suite.suites:
        _drop_tags(child, tags)
    suite.tests = [test for test in suite.tests if not tags & {str(tag) for tag in test.tags}]


def _keep_stacks(suite: Any, tags: Sequence[str]) -> None:
    for child in suite.suites:
        _keep_stacks(child, tags)
    suite.tests = [
        test
        for test in suite.tests
        if not (wanted := [str(tag) for tag in test.tags if str(tag).startswith(STACK_TAG)])
        or set(wanted) & set(tags)
    ]


def _keep_folders(suite: Any, kind: KindSuites) -> None:
    if kind.folders is None:
        return
    suite.suites = [child for child in suite.suites if _below(child.source, kind.folders)]
    for child in suite.suites:
        _keep_folders(child, kind)
    if suite.tests and not _below(suite.source, kind.folders):
        suite.tests.clear()


def _below(source: Path | None, folders: Iterable[str]) -> bool:
    """Say whether a file lies in one of the folders, or is one, or holds one."""
    if source is None:
        return True
    path = Path(source).resolve()
    if SUITES not in (path, *path.parents) and path not in SUITES.parents:
        return True  # somebody's own suites: no kind says anything of them
    homes = [SUITES / folder for folder in folders]
    return any(path == home or home in path.parents or path in home.parents for home in homes)


def _set_variables(suite: Any, target: str, kind: KindSuites) -> None:
    """Set the variables in every suite file: those of a file go before those of its resources."""
    values = {"TARGET": target, **kind.variables}
    for name, value in values.items():
        suite.resource.variables.create(name=f"${{{name}}}", value=[value])
    for child in suite.suites:
        _set_variables(child, target, kind)
