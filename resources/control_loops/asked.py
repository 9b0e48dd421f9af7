# SPDX-License-Identifier: Apache-2.0
"""Which requirements of a file a profile measures, and which can be measured at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hw.errors import ConfigError
from hw.fields import Fields
from hw.toml_file import read_toml
from reports.control_loops.case import Case, case_of_stretch
from reports.requirements import Requirement
from resources.profiles import times_of
from resources.requirements_file import load_requirements_file


def asked_requirements(
    path: Path,
    stretches: Mapping[str, Sequence[str]],
    profile: str,
    times: Path,
    cases: Callable[[Fields], Sequence[Case]],
) -> tuple[list[Requirement], list[str]]:
    """Return the requirements of a file that a profile measures, and the names of the others.

    Args:
        path: The file.
        stretches: Of each quantity that it may have a limit of, those that there are.
        profile: Its name.
        times: What each profile does.
        cases: Reads a profile's table: under what it measures.

    Raises:
        ConfigError: A requirement is on a stretch that there is not, or under what no profile measures.
    """
    there = dict.fromkeys(case.words for name in read_toml(times) for case in times_of(name, times, cases))
    own = times_of(profile, times, cases)
    asked: list[Requirement] = []
    others: list[str] = []
    for each in load_requirements_file(path, *stretches).requirements:
        name, case = case_of_stretch(each.of)
        names = stretches[each.quantity]
        if name not in names:
            raise ConfigError(
                f"{path}: {each.id}.stretch: {each.of!r}; {each.quantity} has {', '.join(names)}"
            )
        if case.words not in there:
            said = ", ".join(words or "nothing" for words in there)
            raise ConfigError(f"{path}: {each.id}.stretch: {each.of!r}; behind {name!r} may stand: {said}")
        if case in own:
            asked.append(each)
        else:
            others.append(each.id)
    return asked, others
