# SPDX-License-Identifier: Apache-2.0
"""Requirements are data: an id, what is to be measured of what, a limit, and where the limit comes from.

They stand in files of one form: `reports/requirement_forms.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from reports.clock_sync.mask_verdict import MASK_QUANTITIES
from reports.errors import RequirementsError
from reports.record.measurement import Limit, Measurement, Number
from reports.units import format_value

ROLES = ("consumer", "producer")
"""Whether the target receives the streams, or sends them in the place of a producer."""
LOCK_TIME = "lock_time"
AS_FOUND = "as-found"
"""The clock as the machine itself keeps it: nothing is put on it, so there is no lock to wait for."""


@dataclass(frozen=True, slots=True)
class Part:
    """Something that a requirement asks to be measured: any of some quantities, by a statistic.

    Attributes:
        name: In words, for what is missing.
        statistic: Empty: any.
        upper: Upper limit in the unit of the record; None: it is not in the file.
        lower: Likewise a lower limit.
        lost: What may be lost at most; None: it is not in the file, or not as a number.
        samples: That are needed; 0: the profile says so.
        subject: What it is of: one of `AXES`, and which; None: the target as such.
    """

    name: str
    quantities: tuple[str, ...]
    statistic: str
    upper: Number | None
    lower: Number | None = None
    lost: int | None = None
    samples: int = 0
    subject: tuple[str, str] | None = None

    def covers(self, record: Measurement) -> bool:
        """Say whether a record is a measurement of this part."""
        return record.quantity in self.quantities and self.statistic in ("", record.statistic)

    def discrepancy(self, record: Measurement) -> str:
        """Return why a record was judged by less than the file asks; empty: it was not."""
        limit = record.limit.upper
        if self.upper is not None and (limit is None or limit > self.upper):
            return f"judged against {limit} {record.unit}, the requirement is {self.upper}"
        least = record.limit.lower
        if self.lower is not None and (least is None or least < self.lower):
            return f"judged against {least} {record.unit} at least, the requirement is {self.lower}"
        if self.lost is not None and record.allowed_lost > self.lost:
            return f"judged with {record.allowed_lost} lost allowed, the requirement is {self.lost}"
        if record.n_required < self.samples:
            return f"judged from {record.n_required} samples, the requirement is {self.samples}"
        if self.subject is not None:
            name, wanted = self.subject
            found = record.subject.on(name)
            if found != wanted:
                return f"measured of {name} {found}, the requirement is on {name} {wanted}"
        return ""


@dataclass(frozen=True, slots=True)
class Requirement:
    """A requirement as its file has it.

    Attributes:
        limit: In the unit of the record; of what may lie to either side, such as an offset, the upper one.
        unit: Of the limit.
        subject: What it is on: one of `AXES`, and which; None: the target as such.
        samples: That it has to rest on; 0: the profile says how many.
        lost: What may be lost at most; None: the file does not say.
        lost_percent: Likewise, as a share of what was asked for.
        lock_within_s: Deadline for a lock; 0: none.
        mask: A mask besides the limit: a name or a file, its path counted from this file; empty: none.
        mask_from_tau_s: From where on the mask is asked for; None: from its begin.
        mask_to_tau_s: Up to where; None: to its end.
        of_sender: Whether it is asked of a target that sends: the file's role is `producer`.
    """

    id: str
    quantity: str
    statistic: str
    limit: Limit
    unit: str = "ns"
    subject: tuple[str, str] | None = None
    samples: int = 0
    lost: int | None = None
    lost_percent: float | None = None
    lock_within_s: int = 0
    mask: str = ""
    mask_from_tau_s: float | None = None
    mask_to_tau_s: float | None = None
    of_sender: bool = False

    @property
    def of(self) -> str:
        """Return which stream, clock, method or other thing it is on; empty: it is on the target as such."""
        return self.subject[1] if self.subject else ""

    @property
    def upper_ns(self) -> int:
        """Return the limit of a time."""
        assert self.unit == "ns"
        assert self.limit.upper is not None
        return int(self.limit.upper)

    def lost_of(self, wanted: int) -> int:
        """Return how many of so many that were asked for may be lost."""
        return int(wanted * (self.lost_percent or 0) / 100)

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return all that it asks to be measured."""
        name, limit, subject = f"{self.quantity} {self.statistic}", self.limit, self.subject
        what = (name, (self.quantity,), self.statistic, limit.upper, limit.lower)
        parts = [Part(*what, self.lost, self.samples, subject)]
        if self.lock_within_s and self.of != AS_FOUND:
            parts.append(Part(LOCK_TIME, (LOCK_TIME,), "", self.lock_within_s, subject=subject))
        if self.mask:
            parts.append(Part(f"mask {self.mask}", tuple(sorted(MASK_QUANTITIES)), "", None, subject=subject))
        return tuple(parts)

    def discrepancy_with(self, kept: Requirement) -> str:
        """Return why what was judged by another requirement of this id was judged by less than this one asks.

        Of what no record says: the share that may be lost, the mask, and from which to which tau. Empty: it
        was not.
        """
        share, judged_by = self.lost_percent or 0, kept.lost_percent or 0
        if self.lost is None and judged_by > share:
            return f"judged with {judged_by:g} % lost allowed, the requirement is {share:g} %"
        if not self.mask:
            return ""
        if PurePath(kept.mask).name != PurePath(self.mask).name:
            return f"judged by mask {kept.mask or 'none'}, the requirement is mask {self.mask}"
        begin_s, end_s = self.mask_from_tau_s or 0, self.mask_to_tau_s or math.inf
        judged_from_s, judged_to_s = kept.mask_from_tau_s or 0, kept.mask_to_tau_s or math.inf
        if judged_from_s > begin_s or judged_to_s < end_s:
            return (
                f"judged by its mask from {judged_from_s:g} to {judged_to_s:g} s,"
                f" the requirement is from {begin_s:g} to {end_s:g} s"
            )
        return ""

    @property
    def text(self) -> str:
        """Return it in words."""
        spoken = f"{self.quantity}, {self.statistic}".replace("_", " ")
        of = f"of {' '.join(self.subject) if self.subject else 'the target'}"
        upper, lower = self.limit.upper, self.limit.lower
        words = [f"at most {format_value(upper, self.unit)}"] if upper is not None else []
        words += [f"at least {format_value(lower, self.unit)}"] if lower is not None else []
        words += [f"at most {self.lost} lost" if self.lost else "none lost"] if self.lost is not None else []
        words += [f"from {self.samples} samples"] if self.samples else []
        words += [f"at most {self.lost_percent:g} % lost"] if self.lost_percent is not None else []
        words += (
            [f"locked within {self.lock_within_s} s"] if self.lock_within_s and self.of != AS_FOUND else []
        )
        begin, end = self.mask_from_tau_s, self.mask_to_tau_s
        words += [f"mask {self.mask}"] if self.mask else []
        words += [f"from tau {begin:g} s"] if begin is not None else []
        words += [f"up to tau {end:g} s"] if end is not None else []
        return f"{spoken}, {of}{', sent by the target' if self.of_sender else ''}: {', '.join(words)}"


@dataclass(frozen=True, slots=True)
class RequirementSet:
    """A file of requirements.

    Attributes:
        path: As a reader knows it: in the run folder, or as named on the command line.
        pattern: Name of the pattern that its streams are of; empty: it asks nothing of streams.
        is_partial: Only producers whose streams have a requirement send: for a target that cannot take all.
        role: One of `ROLES`.
        run_ids: Runs that kept it; empty: it was named on the command line.
    """

    path: str
    name: str
    schema: str
    sha256: str
    requirements: tuple[Requirement, ...]
    pattern: str = ""
    is_partial: bool = False
    role: str = ROLES[0]
    run_ids: tuple[str, ...] = ()


def merged(sets: Iterable[RequirementSet]) -> list[RequirementSet]:
    """Return files of equal bytes and path as one, with all runs that kept it."""
    by_content: dict[tuple[str, str], RequirementSet] = {}
    for each in sets:
        known = by_content.setdefault((each.path, each.sha256), replace(each, run_ids=()))
        by_content[each.path, each.sha256] = replace(known, run_ids=(*known.run_ids, *each.run_ids))
    return list(by_content.values())


def requirements_for(
    sets: Sequence[RequirementSet], run_ids: Iterable[str]
) -> list[tuple[RequirementSet, Requirement]]:
    """Return the requirements on a target that some runs measured, in the order of the files.

    A file of the command line goes before what a run kept.

    Raises:
        RequirementsError: Two files ask different things by one id, and the command line does not decide.
    """
    runs = set(run_ids)
    asked = [each for each in sets if not each.run_ids]
    kept = [each for each in sets if runs & set(each.run_ids)]
    chosen: dict[str, tuple[RequirementSet, Requirement]] = {}
    for each in (*asked, *kept):
        for requirement in each.requirements:
            known = chosen.setdefault(requirement.id, (each, requirement))
            if known[1] == requirement or (not known[0].run_ids and each.run_ids):
                continue
            raise RequirementsError(
                f"requirement {requirement.id}: {_origin(known[0])} and {_origin(each)} differ;"
                " name the file that holds with --requirements"
            )
    return list(chosen.values())


def _origin(found: RequirementSet) -> str:
    return f"{found.path} of run {found.run_ids[0]}" if found.run_ids else found.path
