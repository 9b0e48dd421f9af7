# SPDX-License-Identifier: Apache-2.0
"""The plan of an acceptance: which benches, targets, suites and stacks are measured, in which order.

    schema = "benchwright.acceptance/1"
    name = "hall-7"
    profile = "acceptance"                 # default

    [[parts]]
    bench = "hw/benches/native.yaml"
    targets = ["linux"]
    suites = ["robot/daq_replay", "robot/rt_baseline"]
    stacks = ["kernel"]                    # left out: what the suites have by themselves
    longest_min = 90                       # each of its runs; after that it is broken off
    variables = {REQUIREMENTS = "site/daq.toml"}

A table becomes one part for each target, suite and stack: a run of its own, in the order of the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from hw.bench import load_bench
from hw.errors import BenchwrightError, ConfigError
from hw.fields import Fields
from hw.toml_file import read_toml
from resources.every_target import require_stacks
from resources.profiles import load_profile
from resources.qualify import require_suite

SCHEMA = "benchwright.acceptance/1"
PROFILE = "acceptance"
PARTS_MAX = 1000
LONGEST_MIN_MAX = 30 * 24 * 60


@dataclass(frozen=True)
class Part:
    """One run of an acceptance.

    Attributes:
        number: In the order of measurement, from 1.
        bench: Its file.
        stack: Network stack; empty: the suites' own.
        variables: Of Robot Framework, by name.
        longest_min: After so many minutes it is broken off.
    """

    number: int
    bench: Path
    target: str
    suite: Path
    stack: str
    variables: Mapping[str, str]
    longest_min: int

    @property
    def words(self) -> str:
        """Return what it measures, in words."""
        stack = f" by {self.stack}" if self.stack else ""
        return f"{self.suite} with {self.target} of {self.bench}{stack}"

    def arguments(self, profile: str) -> list[str]:
        """Return the options of `python -m resources.qualify` that make the run."""
        named = ["--bench", str(self.bench), "--profile", profile, "--suite", str(self.suite)]
        named += ["--targets", self.target, *(["--stacks", self.stack] if self.stack else [])]
        robot = [word for name, value in self.variables.items() for word in ("--variable", f"{name}:{value}")]
        return [*named, "--", *robot]


@dataclass(frozen=True)
class AcceptancePlan:
    """What a plan file says, whole and checked.

    Attributes:
        text: The file's own.
    """

    name: str
    profile: str
    parts: tuple[Part, ...]
    text: str

    @property
    def longest_min(self) -> int:
        """Return how many minutes all parts take at most, without repeats."""
        return sum(each.longest_min for each in self.parts)

    def files(self) -> list[Path]:
        """Return the files that say what is measured: of benches, and those that variables name."""
        named = {each.bench for each in self.parts}
        named |= {Path(value) for each in self.parts for value in each.variables.values()}
        return sorted(each for each in named if each.is_file())

    def listed(self) -> str:
        """Return the parts in their order, a line each, and the longest time of all."""
        lines = [f"{each.number:4}  {each.words}, at most {each.longest_min} min" for each in self.parts]
        whole = (
            f"{self.name}: {len(self.parts)} parts, profile {self.profile}, at most {self.longest_min} min"
        )
        return "\n".join([*lines, whole])


def read_plan(path: Path) -> AcceptancePlan:
    """Read a plan, and all that it names; nothing is started.

    Raises:
        ConfigError: Names file, key and what is allowed.
    """
    table = Fields(read_toml(path), str(path), "")
    table.text("schema", choices=(SCHEMA,))
    name = table.name("name")
    profile = table.text("profile", PROFILE)
    try:
        load_profile(profile)
    except BenchwrightError as error:
        raise table.fault("profile", str(error)) from error
    parts: list[Part] = []
    for each in table.tables("parts"):
        parts += _parts(each, len(parts))
    table.finish()
    if not 1 <= len(parts) <= PARTS_MAX:
        raise table.fault("parts", f"must come to 1..{PARTS_MAX} runs, found {len(parts)}")
    return AcceptancePlan(name, profile, tuple(parts), path.read_text(encoding="utf-8-sig"))


def _parts(table: Fields, before: int) -> list[Part]:
    bench = Path(table.text("bench"))
    targets = table.texts("targets", None)
    suites = [Path(each) for each in table.texts("suites", None)]
    stacks = table.texts("stacks", None) if table.has("stacks") else ("",)
    longest_min = table.integer("longest_min", 1, LONGEST_MIN_MAX)
    variables = table.texts_of("variables")
    for key, values in (("targets", targets), ("suites", suites), ("stacks", stacks)):
        if not values or len(set(values)) < len(values):
            raise table.fault(key, f"{[str(each) for each in values]}; needed: one at least, each once")
    key = "bench"
    try:
        spec = load_bench(bench)
        key = "targets"
        if unknown := sorted(set(targets) - set(spec.targets)):
            raise ConfigError(f"no target {unknown[0]!r} of {bench}; there are: {', '.join(spec.targets)}")
        key = "suites"
        for suite in suites:
            require_suite(suite)
        key = "stacks"
        require_stacks((spec.targets[each].provisioning for each in targets), filter(None, stacks))
    except BenchwrightError as error:
        raise table.fault(key, str(error)) from error
    table.finish()
    every = product(targets, suites, stacks)
    return [
        Part(number, bench, target, suite, stack, variables, longest_min)
        for number, (target, suite, stack) in enumerate(every, before + 1)
    ]
