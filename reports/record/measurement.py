# SPDX-License-Identifier: Apache-2.0
"""The measurement record: one value with its limit, its uncertainty and its verdict.

A record is one JSON object on one line of `measurements.jsonl`. Its schema is kept beside this file in
`measurement.schema.json`, made from these dataclasses by `python -m reports schema`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from reports.errors import RecordError
from reports.quantities import AXES, axis_words
from reports.record.codec import from_json, json_schema, omit_none, to_json
from reports.record.json_text import load_json
from reports.record.part_names import PRESENT

SCHEMA = "benchwright.measurement/1"
RULE = "guard-band-U"

Number = int | float
Outcome = Literal["pass", "fail", "inconclusive", "unset", "error"]
PartKind = Literal["bound", "standard"]


def _check_finite(where: str, value: Number | None) -> None:
    if value is not None and not math.isfinite(value):
        raise RecordError(f"{where}: {value} is not finite")


@dataclass(frozen=True, slots=True)
class Limit:
    """What the value is held against: an upper limit, a lower one, or both, in the record's unit."""

    upper: Number | None
    lower: Number | None
    source: str

    def __post_init__(self) -> None:
        """Refuse a limit that limits nothing, or that nothing could meet."""
        _check_finite("limit.upper", self.upper)
        _check_finite("limit.lower", self.lower)
        if self.upper is None and self.lower is None:
            raise RecordError("limit: neither upper nor lower is given")
        if self.upper is not None and self.lower is not None and self.lower > self.upper:
            raise RecordError(f"limit: lower {self.lower} is above upper {self.upper}")


@dataclass(frozen=True, slots=True)
class UncertaintyPart:
    """One named contribution: a hard bound, or one standard deviation, in the record's unit."""

    name: str
    kind: PartKind
    value: Number

    def __post_init__(self) -> None:
        """Take an old name for its present one; refuse a negative or non-finite part: a looser verdict."""
        object.__setattr__(self, "name", PRESENT.get(self.name, self.name))
        if not (math.isfinite(self.value) and self.value >= 0):
            raise RecordError(f"uncertainty part {self.name}: {self.value} is not a finite number >= 0")


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """Expanded uncertainty U (coverage factor 2) with the parts that it was made from."""

    expanded: Number
    parts: tuple[UncertaintyPart, ...]

    def __post_init__(self) -> None:
        """Refuse an expanded uncertainty that its parts do not give."""
        try:
            expected = expanded_uncertainty(self.parts)
        except OverflowError as error:
            raise RecordError(f"uncertainty.parts: {error}") from error
        if not math.isclose(self.expanded, expected, rel_tol=1e-9, abs_tol=1e-12):
            raise RecordError(f"uncertainty.expanded: {self.expanded} is not what its parts give, {expected}")

    @classmethod
    def from_parts(cls, parts: Iterable[UncertaintyPart]) -> Uncertainty:
        """Combine the parts: U = sum of the bounds + 2 * sqrt(sum of the squared deviations)."""
        kept = tuple(parts)
        return cls(expanded_uncertainty(kept), kept)


def expanded_uncertainty(parts: Iterable[UncertaintyPart]) -> Number:
    """Return U of the parts, in their unit; of integers an integer, rounded up.

    Bounds add linearly, because they may all be reached at once; standard deviations add in quadrature
    and count twice (k = 2, about 95 % of a normal distribution; JCGM 100:2008, 6.2).
    """
    kept = tuple(parts)
    bounds = [part.value for part in kept if part.kind == "bound"]
    deviations = [part.value for part in kept if part.kind == "standard"]
    if all(isinstance(part.value, int) for part in kept):
        return int(sum(bounds)) + _ceil_sqrt(4 * sum(int(value) ** 2 for value in deviations))
    return math.fsum(bounds) + 2.0 * math.sqrt(math.fsum(value * value for value in deviations))


def _ceil_sqrt(square: int) -> int:
    root = math.isqrt(square)
    return root if root * root == square else root + 1


@dataclass(frozen=True, slots=True)
class AxisValue:
    """Which one of an axis: a device, or whatever else a capability measures."""

    axis: str
    value: str


@dataclass(frozen=True, slots=True)
class Subject:
    """What was measured: which target, stack, clock, stream or timed edge, on which bench.

    Attributes:
        axes: Values of axes that have no key of their own, by name; never empty.
    """

    bench: str
    target: str
    stack: str | None = omit_none()
    clock: str | None = omit_none()
    stream: str | None = omit_none()
    method: str | None = omit_none()
    axes: tuple[AxisValue, ...] | None = omit_none()

    def __post_init__(self) -> None:
        """Refuse an axis that stands twice, or that has a key of its own."""
        names = [each.axis for each in self.axes or ()]
        if self.axes is not None and not names:
            raise RecordError("subject.axes: empty; it is left out where there are none")
        for name in names:
            if name in _KEYS_OF_AXES or names.count(name) > 1:
                raise RecordError(f"subject.axes: {name!r} stands twice, or has a key of its own")

    def on(self, axis: str) -> str | None:
        """Return the value on an axis; None: it is not on that axis."""
        if axis in _KEYS_OF_AXES:
            found: str | None = getattr(self, axis)
            return found
        return next((each.value for each in self.axes or () if each.axis == axis), None)

    @property
    def of(self) -> tuple[tuple[str, str], ...]:
        """Return axis and value of all that it is on, in the order of `AXES`, then as the record has them."""
        names = dict.fromkeys([*AXES, *(each.axis for each in self.axes or ())])
        return tuple((name, value) for name in names if (value := self.on(name)) is not None)

    @property
    def words(self) -> tuple[str, ...]:
        """Return the same as pages show it."""
        return tuple(axis_words(name, value) for name, value in self.of)


_KEYS_OF_AXES = ("stream", "clock", "method")


@dataclass(frozen=True, slots=True)
class NumberedCondition:
    """A condition that is a number; the name carries its unit, such as `size_bytes`."""

    name: str
    value: Number


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions that the value was measured under.

    Attributes:
        numbers: Conditions that are numbers, by name; never empty.
    """

    profile: str
    phase: str | None = omit_none()
    load: str = "idle"
    impairment: str = "none"
    numbers: tuple[NumberedCondition, ...] | None = omit_none()

    def __post_init__(self) -> None:
        """Refuse a condition that stands twice, or that is not finite."""
        names = [each.name for each in self.numbers or ()]
        if self.numbers is not None and not names:
            raise RecordError("conditions.numbers: empty; it is left out where there are none")
        if len(set(names)) < len(names):
            raise RecordError(f"conditions.numbers: {', '.join(names)}: one stands twice")
        for each in self.numbers or ():
            _check_finite(f"conditions.numbers.{each.name}", each.value)

    @property
    def numbers_text(self) -> str:
        """Return the numbers as `size_bytes=64, load_percent=80`; empty: there are none."""
        return ", ".join(f"{each.name}={each.value:g}" for each in self.numbers or ())


@dataclass(frozen=True, slots=True)
class Evidence:
    """A file of the run folder that the value was computed from, with its SHA-256."""

    path: str
    sha256: str

    def __post_init__(self) -> None:
        """Refuse a path that leaves the run folder, and a text that is no hash."""
        if self.path.startswith("/") or ".." in self.path.split("/") or not self.path:
            raise RecordError(f"evidence.path: {self.path!r} is not a path inside the run folder")
        if len(self.sha256) != 64 or set(self.sha256) - set("0123456789abcdef"):
            raise RecordError(f"evidence.sha256: {self.sha256!r} is not 64 lower-case hex digits")


@dataclass(frozen=True, slots=True)
class Measurement:
    """A measured value, its limit, its expanded uncertainty and its verdict."""

    schema: str
    run_id: str
    test: str
    requirement: str
    quantity: str
    statistic: str
    value: Number | None
    unit: str
    n: int
    n_required: int
    lost: int
    allowed_lost: int
    limit: Limit
    uncertainty: Uncertainty
    margin: Number | None
    rule: str
    outcome: Outcome
    reason: str
    subject: Subject
    conditions: Conditions
    simulated: bool
    evidence: tuple[Evidence, ...]
    time_utc: str

    def __post_init__(self) -> None:
        """Refuse a record that contradicts itself; in particular a pass that is none."""
        if self.schema != SCHEMA:
            raise RecordError(f"schema: {self.schema!r} is not {SCHEMA!r}")
        if self.rule != RULE:
            raise RecordError(f"rule: {self.rule!r} is not {RULE!r}")
        _check_finite("value", self.value)
        _check_finite("margin", self.margin)
        for name, count in (("n", self.n), ("n_required", self.n_required), ("lost", self.lost)):
            if count < 0:
                raise RecordError(f"{name}: {count} is negative")
        parse_utc(self.time_utc)
        self._check_margin()
        if self.outcome == "pass":
            self._check_pass()

    def _check_margin(self) -> None:
        expected = margin_of(self.value, self.limit, self.uncertainty)
        same = self.margin == expected or (
            self.margin is not None
            and expected is not None
            and math.isclose(self.margin, expected, rel_tol=1e-9)
        )
        if not same:
            raise RecordError(f"margin: {self.margin} is not what value, limit and U give, {expected}")

    def _check_pass(self) -> None:
        if self.margin is None or self.margin < 0:
            raise RecordError(f"outcome: pass with margin {self.margin}; a pass needs a margin >= 0")
        if self.n < self.n_required:
            raise RecordError(f"outcome: pass with n = {self.n} of {self.n_required} samples")
        if self.lost > self.allowed_lost:
            raise RecordError(f"outcome: pass with {self.lost} lost, {self.allowed_lost} allowed")

    @classmethod
    def from_json(cls, data: object) -> Measurement:
        """Build a record from decoded JSON; raises RecordError, which names the key."""
        return from_json(cls, data)

    @classmethod
    def from_line(cls, line: str) -> Measurement:
        """Build a record from one line of `measurements.jsonl`; raises RecordError."""
        try:
            return cls.from_json(load_json(line))
        except json.JSONDecodeError as error:
            raise RecordError(f"not JSON: {error}") from error

    def to_json(self) -> dict[str, Any]:
        """Return the record as plain JSON data, keys in the order of the schema."""
        return dict(to_json(self))

    def to_line(self) -> str:
        """Return the record as one line of JSON, without the line's end."""
        return json.dumps(self.to_json(), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def margin_of(value: Number | None, limit: Limit, uncertainty: Uncertainty) -> Number | None:
    """Return what is left to the nearer limit after U, in the record's unit; negative: not a pass."""
    if value is None or not math.isfinite(value):
        return None
    margins: list[Number] = []
    if limit.upper is not None:
        margins.append(limit.upper - uncertainty.expanded - value)
    if limit.lower is not None:
        margins.append(value - limit.lower - uncertainty.expanded)
    return min(margins)


def utc_now() -> str:
    """Return the current time as RFC 3339 text in UTC, to the microsecond."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def parse_utc(text: str) -> datetime:
    """Read an RFC 3339 time in UTC; raises RecordError where it is none."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise RecordError(f"time_utc: {text!r} is not an ISO 8601 time") from error
    if not text.endswith("Z"):
        raise RecordError(f"time_utc: {text!r} does not end in Z")
    return time


def measurement_schema() -> dict[str, Any]:
    """Return the JSON schema of a measurement record."""
    return json_schema(Measurement, {"schema": SCHEMA, "rule": RULE})
