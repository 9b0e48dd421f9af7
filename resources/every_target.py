# SPDX-License-Identifier: Apache-2.0
"""The same suites for several targets in one run: a pre-run modifier of Robot Framework.

    robot --prerunmodifier resources.every_target.EveryTarget:linux-rt:windows robot/

Each target gets a copy of all suites, in a suite that bears its name, with `${TARGET}` set. A target kind
that takes part in some suites only, or needs other variables for them (limits, a pattern that it can take),
says so in `targets/KIND/suites.toml`:

    schema = "benchwright.suites/1"
    has = ["clock", "pins"]                    # of what suites need; left out: all of it
    folders = ["daq_replay", "clock_sync"]     # below robot/; left out: all
    without = ["daq_producer"]                 # of these; left out: none

    [variables]                                # without ${}; left out: none
    REQUIREMENTS = "robot/daq_replay/requirements/daq12.toml"

    [profiles.quick]                           # of these, what a profile has no time for; all optional
    without = ["clock_sync/disturbances.robot", "timed_edges"]     # folders, or files
    without_tags = ["holdover"]                # tests with one of these tags
    stacks = ["chrony"]                        # of the tests of clock stacks those of these alone
    methods = ["tgpio-latch"]                  # the same of the methods of timed edges
    only_by_name = true                        # only a run that names the target has it; left out: false

A suite says what it needs of a target by its metadata `Needs`, as `clock, pins`; a kind that has not all of
it takes no part. A profile has no time for a suite either whose times (`resources/CAP/SUITE.times.toml`, else
`times.toml`) have no table of it.

A test of one clock stack bears the tag `stack:NAME`, one of a method of timed edges `method:NAME`. Where the
kind has `clock/NAME/stack.toml`, it is asked for those stacks alone, and has a test for each where a suite
has a row for all (resources/clock_sync/stack_tests.py); a target with another kind's provisioning
(`raspberry-pi@linux-rt`) for that kind's. What a profile leaves out is told to the listener: the run keeps
it, and its page lists it (reports/run/left_out.py).

Network stacks of the run are named as `stacks=kernel,other`. A suite that uses one says so by its metadata
`Network Stack`; it is run with each, of several in a copy that bears the stack's name, below the suite's own
name, with `${STACK}` set. One that compares them by itself says so by its metadata `Compared Stacks`; it
has all of them in `${COMPARED_STACKS}`. All other suites run once a target.

A variable of the command line (`--variable TARGET:…`) goes before all of these, for every target.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from hw.errors import CapabilityError, ConfigError
from hw.fields import Fields
from hw.toml_file import read_toml
from reports.run.current import set_left_out
from reports.run.left_out import LeftOut
from reports.run.selected import suite_name
from reports.timed_edges.capability import METHODS
from resources.clock_sync.settings import STACKS, StackSpec, load_stacks
from resources.clock_sync.stack_tests import STACK_TAG, make_stack_tests
from resources.network_stack import load_network_stack
from resources.profiles import PROFILES_FILE, has_times

SCHEMA = "benchwright.suites/1"
SUITES_FILE = "suites.toml"
METHOD_TAG = "method:"
PROFILE = "profile="
NETWORK_STACKS = "stacks="
NETWORK_STACK = "Network Stack"
"""Metadata of a suite that uses one."""
COMPARED_STACKS = "Compared Stacks"
"""Metadata of a suite that compares several by itself."""
NEEDS = "Needs"
"""Metadata of a suite: what it needs of a target, with commas between."""
TARGETS = Path(__file__).resolve().parent.parent / "targets"
SUITES = TARGETS.parent / "robot"

_NEEDS = re.compile(rf"Metadata\s+{NEEDS}\s+(.*)")
_TAGS = re.compile(r"(?:\s+\[Tags\]|Test Tags)\s+(.*)")

_api: Any = import_module("robot.api")  # no types of its own


@dataclass(frozen=True)
class ProfileSuites:
    """What of the suites of a kind a profile has no time for.

    Attributes:
        name: Of the profile; empty: none is known.
        without: Folders, or files of suites.
        without_tags: Tests with one of these tags.
        only: Tests with a tag that begins so, as `stack:`, have to have one of these.
        only_by_name: Whether a run that names no target does without one of this kind.
    """

    name: str = ""
    without: tuple[str, ...] = ()
    without_tags: tuple[str, ...] = ()
    only: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    only_by_name: bool = False


@dataclass(frozen=True)
class KindSuites:
    """Which suites a target kind takes part in; `folders` None: all; `has` None: whatever a suite needs."""

    folders: tuple[str, ...] | None = None
    has: frozenset[str] | None = None
    variables: dict[str, str] = field(default_factory=dict[str, str])
    stacks: tuple[StackSpec, ...] | None = None
    """Its clock stacks; None: it does not say."""
    profile: ProfileSuites = field(default_factory=ProfileSuites)


def load_kind_suites(kind_folder: Path, provisioning: str = "", profile: str = "") -> KindSuites:
    """Read `suites.toml` of a target kind; without the file it takes part in everything.

    Args:
        kind_folder: `targets/KIND`.
        provisioning: The kind beside it whose provisioning and clock stacks the target has; empty: its own.
        profile: Whose table under `profiles` counts.

    Raises:
        ConfigError: Names file, key and what is allowed.
    """
    path = kind_folder / SUITES_FILE
    of_clocks = kind_folder.parent / (provisioning or kind_folder.name) / STACKS
    stacks = tuple(load_stacks(True, of_clocks).values()) if of_clocks.exists() else None
    stack_names = [stack.name for stack in stacks or ()]
    if not path.exists():
        return KindSuites(stacks=stacks, profile=ProfileSuites(profile))
    table = Fields(read_toml(path), str(path), "")
    table.text("schema", choices=(SCHEMA,))
    known = sorted(each.name for each in SUITES.iterdir() if any(each.rglob("*.robot")))
    has = frozenset(table.texts("has", choices=_needs())) if table.has("has") else None
    folders = table.texts("folders", choices=known) if table.has("folders") else None
    without = set(table.texts("without", choices=known, default=()))
    if without:
        folders = tuple(name for name in folders or known if name not in without)
    profiles = {
        _known_profile(name, path): _profile_suites(name, each, known, stack_names)
        for name, each in table.table_of("profiles", optional=True).items()
    }
    variables = table.texts_of("variables")
    if "TARGET" in variables:
        raise ConfigError(f"{path}: variables.TARGET: is the name of the target; leave it out")
    table.finish()
    return KindSuites(folders, has, variables, stacks, profiles.get(profile, ProfileSuites(profile)))


def _known_profile(name: str, path: Path) -> str:
    names = tuple(read_toml(PROFILES_FILE))
    if name not in names:
        raise ConfigError(f"{path}: profiles.{name}: no such profile; there are: {', '.join(names)}")
    return name


def _profile_suites(name: str, table: Fields, folders: Sequence[str], stacks: Sequence[str]) -> ProfileSuites:
    files = sorted(
        file.relative_to(SUITES).as_posix()
        for folder in folders
        for file in (SUITES / folder).rglob("*.robot")
    )
    named = {"stacks": (STACK_TAG, stacks), "methods": (METHOD_TAG, METHODS)}
    only = {prefix: table.texts(key, choices, default=()) for key, (prefix, choices) in named.items()}
    found = ProfileSuites(
        name,
        without=table.texts("without", [*folders, *files], default=()),
        without_tags=table.texts("without_tags", _tags(), default=()),
        only={prefix: only[prefix] for key, (prefix, _) in named.items() if table.has(key)},
        only_by_name=table.boolean("only_by_name", default=False),
    )
    table.finish()
    return found


def _needs() -> list[str]:
    """Return what a suite needs of a target."""
    texts = (file.read_text("utf-8") for file in SUITES.rglob("*.robot"))
    return sorted({need for text in texts for match in _NEEDS.finditer(text) for need in _each(match[1])})


def _each(needs: str) -> set[str]:
    return {need for each in needs.split(",") if (need := each.strip())}


def _tags() -> list[str]:
    """Return the tags that a test of the suites has, apart from those that name a stack or a method."""
    lines = (line for file in SUITES.rglob("*.robot") for line in file.read_text("utf-8").splitlines())
    found = {
        tag
        for line in lines
        if (match := _TAGS.match(line))
        for tag in re.split(r"\s{2,}", match[1].strip())
        if not tag.startswith((STACK_TAG, METHOD_TAG))
    }
    return sorted(found)


class EveryTarget(_api.SuiteVisitor):  # type: ignore[misc]
    """Give each target a copy of the suites, and each network stack one of those that use it.

    One target alone, and one stack alone, gets them as they are.
    """

    def __init__(self, *targets: str) -> None:
        """Remember the targets.

        Args:
            targets: `NAME`, or `NAME@KIND` with the kind that provisions it; one may be `profile=NAME`, one
                `stacks=NAME,…`.
        """
        self._targets = targets

    def visit_suite(self, suite: Any) -> None:
        """Change the outermost suite; it is the only one that is visited.

        Raises:
            ConfigError: A file is wrong, no target is named, or no kind has one of the network stacks. The
                suite is then without tests.
        """
        with no_tests_where_wrong(suite):
            self._read(self._targets)
            self._change(suite)

    def _read(self, targets: Sequence[str]) -> None:
        """Read the files of the targets' kinds."""
        self._profile = "".join(each.removeprefix(PROFILE) for each in targets if each.startswith(PROFILE))
        chosen = (each.removeprefix(NETWORK_STACKS) for each in targets if each.startswith(NETWORK_STACKS))
        self._stacks = tuple(dict.fromkeys(name for each in chosen for name in each.split(",") if name))
        named = [each.partition("@") for each in targets if not each.startswith((PROFILE, NETWORK_STACKS))]
        if not named:
            raise ConfigError("EveryTarget: needs the name of one target at least")
        self._kinds = {
            name: load_kind_suites(TARGETS / name, other, self._profile) for name, _, other in named
        }
        require_stacks([other or name for name, _, other in named], self._stacks)

    def _change(self, suite: Any) -> None:
        if len(self._kinds) == 1:
            [(target, kind)] = self._kinds.items()
            self._told(suite, _keep(suite, target, kind))
            set_variables(suite, {"TARGET": target, **kind.variables})
            _set_stacks(suite, self._stacks)
            return
        copies: list[Any] = []
        left_out: list[LeftOut] = []
        for target, kind in self._kinds.items():
            copy = suite.deepcopy(name=target)
            left_out += _keep(copy, target, kind)
            set_variables(copy, {"TARGET": target, **kind.variables})
            _set_stacks(copy, self._stacks)
            if copy.has_tests:
                copies.append(copy)
        suite.name = "Qualification"
        _replace_by(suite, copies)
        self._told(suite, left_out)

    def _told(self, suite: Any, left_out: Sequence[LeftOut]) -> None:
        """Tell the listener what the profile leaves out; where that is all, whoever started the run."""
        set_left_out(left_out)
        if left_out and not suite.has_tests:
            print(
                f"[ ERROR ] profile {self._profile} leaves out every test of these suites;"
                " PROFILE=ci and longer ones have more of them",
                file=sys.__stderr__,
                flush=True,
            )


@contextmanager
def no_tests_where_wrong(suite: Any) -> Generator[None]:
    """Take the tests out of a suite whose modifier ends by an error.

    Robot Framework logs that error, and would run the suite as the modifier has found it.
    """
    try:
        yield
    except Exception:
        suite.tests.clear()
        suite.suites.clear()
        raise


def require_stacks(kinds: Iterable[str], stacks: Iterable[str]) -> None:
    """Refuse a network stack that no kind of target has; one that only another kind has is left to the suite.

    Args:
        kinds: Those that provision the targets of the run.
        stacks: Names of the stacks.

    Raises:
        ConfigError: No kind has it, or its file is wrong: names file, key and what there is.
    """
    for kind in kinds:
        for stack in stacks:
            with suppress(CapabilityError):
                load_network_stack(TARGETS / kind, stack)


def _keep(suite: Any, target: str, kind: KindSuites) -> tuple[LeftOut, ...]:
    """Take out what a kind takes no part in, then what the profile has no time for; return the latter."""
    _keep_folders(suite, kind)
    _keep_possible(suite, kind, _needs())
    if kind.stacks is not None:
        stacks = kind.stacks
        make_stack_tests(suite, lambda: stacks)
        _keep_tests(suite, ProfileSuites(only={STACK_TAG: tuple(stack.name for stack in stacks)}))
    suite.remove_empty_suites()
    left_out = tuple(_keep_tests(suite, kind.profile, target))
    suite.remove_empty_suites()
    return left_out


def _keep_tests(suite: Any, profile: ProfileSuites, target: str = "") -> tuple[LeftOut, ...]:
    """Take out what a profile has no time for; return what that is, suite by suite."""
    found = [each for child in suite.suites for each in _keep_tests(child, profile, target)]
    kept = [test for test in suite.tests if not _is_left_out(test, suite.source, profile)]
    if len(kept) < len(suite.tests) and suite.source is not None:
        tests = tuple(str(test.name) for test in suite.tests if test not in kept)
        found.append(LeftOut(target, suite_name(Path(suite.source)), tests, whole=not kept))
    suite.tests = kept
    return tuple(found)


def _is_left_out(test: Any, source: Path | None, profile: ProfileSuites) -> bool:
    tags = {str(tag) for tag in test.tags}
    if tags & set(profile.without_tags):
        return True
    for prefix, names in profile.only.items():
        of = {tag.removeprefix(prefix) for tag in tags if tag.startswith(prefix)}
        if of and not of & set(names):
            return True
    if source is None:
        return False
    path = Path(source).resolve()
    homes = [SUITES / each for each in profile.without]
    return any(home in (path, *path.parents) for home in homes) or not _has_time(path, profile.name)


def _has_time(suite: Path, profile: str) -> bool:
    """Say whether a profile has time for a suite; of somebody's own suites: always."""
    if not profile or SUITES not in suite.parent.parents:
        return True
    folder = SUITES.parent / "resources" / suite.relative_to(SUITES).parts[0]
    files = [folder / name for name in (f"{suite.stem}.times.toml", "times.toml")]
    file = next((file for file in files if file.exists()), None)
    return file is None or has_times(profile, file)


def _keep_folders(suite: Any, kind: KindSuites) -> None:
    if kind.folders is None:
        return
    suite.suites = [child for child in suite.suites if _below(child.source, kind.folders)]
    for child in suite.suites:
        _keep_folders(child, kind)
    if suite.tests and not _below(suite.source, kind.folders):
        suite.tests.clear()


def _keep_possible(suite: Any, kind: KindSuites, known: Sequence[str]) -> None:
    """Take out the tests of suites that need what the kind has not.

    Args:
        suite: Changed in place.
        kind: Of the target.
        known: What the project's suites need.

    Raises:
        ConfigError: A suite of somebody's own needs what none of the project's does: no kind could have it.
    """
    for child in suite.suites:
        _keep_possible(child, kind, known)
    needs = _each(suite.metadata.get(NEEDS, ""))
    if unknown := sorted(needs.difference(known)):
        raise ConfigError(f"{suite.source}: {NEEDS}: must be of {', '.join(known)}; found {unknown[0]!r}")
    if kind.has is not None and not needs <= kind.has:
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


def _replace_by(suite: Any, copies: Iterable[Any]) -> None:
    """Put copies in the place of all that a suite has."""
    suite.tests.clear()
    suite.suites.clear()
    suite.setup = suite.teardown = None
    suite.resource.imports.clear()
    suite.suites.extend(copies)


def _set_stacks(suite: Any, stacks: Sequence[str]) -> None:
    """Set the network stack in the suites that use one; of several each gets a copy, or one compares them."""
    for child in suite.suites:
        _set_stacks(child, stacks)
    if suite.tests and COMPARED_STACKS in suite.metadata and stacks:
        set_variables(suite, {"COMPARED_STACKS": " ".join(stacks)})
    if not suite.tests or NETWORK_STACK not in suite.metadata or not stacks:
        return
    copies = [suite] if len(stacks) == 1 else [suite.deepcopy(name=stack) for stack in stacks]
    for copy, stack in zip(copies, stacks, strict=True):
        set_variables(copy, {"STACK": stack})
    if len(stacks) > 1:
        suite.metadata.clear()
        _replace_by(suite, copies)


def set_variables(suite: Any, values: Mapping[str, str]) -> None:
    """Set variables in a suite and those below it, in the place of its file's own; they go before all others.

    Args:
        suite: Of Robot Framework, before it runs.
        values: By names without `${}`.
    """
    own = suite.resource.variables
    names = {f"${{{name}}}".upper() for name in values}
    own[:] = [each for each in own if each.name.rstrip(" =").upper() not in names]
    for name, value in values.items():
        own.create(name=f"${{{name}}}", value=[value])
    for child in suite.suites:
        set_variables(child, values)
