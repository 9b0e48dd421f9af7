# SPDX-License-Identifier: Apache-2.0
"""What the profile of a run leaves out, though the kind of target takes part in it.

`resources/every_target.py` takes it out before Robot Framework begins and says so; the listener notes it in
the manifest, and the page lists it. What is left out is not asked: it makes no run less than a pass.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Tests of one suite that the profile leaves out.

    Attributes:
        target: Of whom.
        suite: As `reports.run.selected.suite_name` names it.
        tests: Their names.
        whole: There are no others in the suite.
    """

    target: str
    suite: str
    tests: tuple[str, ...]
    whole: bool


def left_out_of(found: Iterable[LeftOut], target: str) -> tuple[LeftOut, ...]:
    """Return what is left out of a target; empty: the run has one at most."""
    return tuple(each for each in found if not target or each.target == target)
