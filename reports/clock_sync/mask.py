# SPDX-License-Identifier: Apache-2.0
"""Limits of standards and papers on clock error: the files in `masks/`.

A file is CSV with `# name:` and `# source:` lines above the header. Each row limits one quantity, to
limit_ns + slope_ns_per_s x tau for tau_above_s < tau <= tau_to_s; single values have no tau. Curves are
compared as they are, without an interval of confidence; the uncertainty of a measurement is the verdict's.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, cast, get_args

from reports.errors import RecordError

FOLDER = Path(__file__).resolve().parent / "masks"

ValueQuantity: TypeAlias = Literal["max_abs_te", "max_abs_tel", "cte"]
CurveQuantity: TypeAlias = Literal["mtie", "tdev", "dte_l_mtie", "dte_l_tdev"]
Quantity: TypeAlias = ValueQuantity | CurveQuantity

VALUES: tuple[str, ...] = get_args(ValueQuantity)
CURVES: tuple[str, ...] = get_args(CurveQuantity)

_COLUMNS = ("quantity", "tau_above_s", "tau_to_s", "limit_ns", "slope_ns_per_s")
_LIMIT_NS_MAX = 1e15
_TAU_S_MAX = 1e9


@dataclass(frozen=True, slots=True)
class Segment:
    """One row of a mask: a limit for an interval of tau; of single values the whole axis."""

    quantity: Quantity
    tau_above_s: float
    tau_to_s: float
    limit_ns: float
    slope_ns_per_s: float

    def limit_at(self, tau_s: float) -> float | None:
        """Return the limit in ns at a tau, None outside the segment."""
        if not self.tau_above_s < tau_s <= self.tau_to_s:
            return None
        return self.limit_ns + (self.slope_ns_per_s * tau_s if self.slope_ns_per_s else 0.0)


@dataclass(frozen=True, slots=True)
class Mask:
    """The limits of one standard or paper."""

    name: str
    source: str
    segments: tuple[Segment, ...]

    def of(self, quantity: str) -> tuple[Segment, ...]:
        """Return the segments of a quantity, ascending in tau."""
        return tuple(segment for segment in self.segments if segment.quantity == quantity)

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """The quantities that are limited, in the order of the file."""
        return tuple(dict.fromkeys(segment.quantity for segment in self.segments))

    @property
    def curves(self) -> tuple[CurveQuantity, ...]:
        """Those of the quantities that are curves."""
        return tuple(cast(CurveQuantity, each) for each in self.quantities if each in CURVES)

    def limit_at(self, quantity: CurveQuantity, tau_s: float) -> float | None:
        """Return the limit of a curve in ns at a tau, None where the mask does not say."""
        found = (segment.limit_at(tau_s) for segment in self.of(quantity))
        return next((limit for limit in found if limit is not None), None)


def mask_names() -> tuple[str, ...]:
    """Return the names of the masks that come with the project: file names without `.csv`."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.csv")))


def mask_file(name: str, folder: Path) -> Path:
    """Return the file of a mask: a path from a folder; without `.csv` the name of one in `masks/`."""
    return folder / name if name.endswith(".csv") else FOLDER / f"{name}.csv"


def load_mask(file: str | Path) -> Mask:
    """Read a mask: the path of a file, or the name of one in reports/clock_sync/masks/.

    Raises:
        RecordError: It cannot be read or is wrong; the message says file, line, field and what is allowed.
    """
    path = Path(file)
    if path.suffix != ".csv" and len(path.parts) == 1:
        path = FOLDER / f"{file}.csv"
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(
            f"{path}: cannot be read: {error}; known masks: {', '.join(mask_names())}"
        ) from error
    facts = {key: _fact(lines, key) for key in ("name", "source")}
    for key, text in facts.items():
        if not text:
            raise RecordError(f'{path}:1: {key}: missing; need a line "# {key}: ..."')
    rows = [
        (number, line) for number, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")
    ]
    if not rows or tuple(next(csv.reader([rows[0][1]]))) != _COLUMNS:
        at = rows[0][0] if rows else len(lines) + 1
        raise RecordError(f"{path}:{at}: header: need {','.join(_COLUMNS)}")
    segments = tuple(_segment(f"{path}:{number}", next(csv.reader([line]))) for number, line in rows[1:])
    if not segments:
        raise RecordError(f"{path}:{rows[0][0] + 1}: no limit; need at least one row")
    _check_order(path, segments, [number for number, _ in rows[1:]])
    return Mask(facts["name"], facts["source"], segments)


def _fact(lines: Sequence[str], key: str) -> str:
    prefix = f"# {key}:"
    return next((line.removeprefix(prefix).strip() for line in lines if line.startswith(prefix)), "")


def _segment(where: str, fields: list[str]) -> Segment:
    if len(fields) != len(_COLUMNS):
        raise RecordError(f"{where}: {len(fields)} fields; need {len(_COLUMNS)}: {','.join(_COLUMNS)}")
    row = dict(zip(_COLUMNS, (field.strip() for field in fields), strict=True))
    quantity = row["quantity"]
    limit_ns = _number(where, "limit_ns", row["limit_ns"], 0.0, _LIMIT_NS_MAX)
    slope = _number(where, "slope_ns_per_s", row["slope_ns_per_s"], 0.0, _LIMIT_NS_MAX)
    if quantity in VALUES:
        if row["tau_above_s"] or row["tau_to_s"] or slope:
            raise RecordError(
                f"{where}: tau_above_s, tau_to_s, slope_ns_per_s: {quantity} has none; leave empty, 0"
            )
        above_s, to_s = 0.0, math.inf
    elif quantity in CURVES:
        above_s = _number(where, "tau_above_s", row["tau_above_s"], 0.0, _TAU_S_MAX)
        endless = row["tau_to_s"] == "inf"
        to_s = math.inf if endless else _number(where, "tau_to_s", row["tau_to_s"], above_s, _TAU_S_MAX)
        if to_s <= above_s:
            raise RecordError(f"{where}: tau_to_s: {row['tau_to_s']}; allowed: more than tau_above_s, or inf")
    else:
        raise RecordError(f'{where}: quantity: "{quantity}"; allowed: {", ".join(VALUES + CURVES)}')
    if limit_ns == 0.0 and slope == 0.0:
        raise RecordError(f"{where}: limit_ns: 0 without a slope; a limit must be more than 0")
    return Segment(cast(Quantity, quantity), above_s, to_s, limit_ns, slope)


def _number(where: str, field: str, text: str, low: float, high: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not low <= value <= high:
        raise RecordError(f'{where}: {field}: "{text}"; allowed: a number from {low:g} to {high:g}')
    return value


def _check_order(path: Path, segments: Sequence[Segment], numbers: Sequence[int]) -> None:
    """Refuse segments of one quantity that overlap or descend: one tau must have one limit."""
    ends: dict[str, float] = {}
    for number, segment in zip(numbers, segments, strict=True):
        end = ends.get(segment.quantity)
        if end is not None and segment.tau_above_s < end:
            raise RecordError(
                f"{path}:{number}: tau_above_s: {segment.tau_above_s:g} of {segment.quantity} overlaps the "
                f"row before; allowed: from {end:g}"
            )
        ends[segment.quantity] = segment.tau_to_s
