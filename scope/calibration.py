# SPDX-License-Identifier: Apache-2.0
"""Calibration records: delays between a signal and what an instrument says of it, with date and expiry.

A file has one `[[record]]` for each thing that delays a signal: a channel's skew, a cable, a pin, the egress
or ingress latency of a network card. What stands in a signal's way is named as a tuple of record ids. A
record that has expired, is not valid yet or was made with another instrument still corrects, but makes the
result inconclusive: `Correction.doubts` says why.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Literal, cast

from scope.budget import Part
from scope.errors import CalibrationError

SCHEMA = "benchwright.scope-calibration/1"
PICOSECONDS_MAX = 10**12
S_PER_PS = 1e-12
_FIELDS = ("id", "kind", "delay_ps", "uncertainty_ps", "uncertainty_kind", "date", "expires", "source")
_OPTIONAL = ("instrument_serial",)


class Kind(Enum):
    """What delays the signal."""

    CHANNEL_SKEW = "channel_skew"
    CABLE_DELAY = "cable_delay"
    PIN_DELAY = "pin_delay"
    NIC_EGRESS = "nic_egress"
    NIC_INGRESS = "nic_ingress"


@dataclass(frozen=True)
class Record:
    """One calibrated delay.

    Attributes:
        id: Name by which a bench refers to it.
        kind: What delays the signal.
        delay_s: How much later the signal is seen than it was; it is subtracted.
        uncertainty_s: Of the delay.
        uncertainty_kind: A hard `bound`, or a `standard` deviation.
        made: Day of the calibration.
        expires: Last day on which it holds.
        source: Certificate, data sheet or procedure that it comes from.
        instrument_serial: Serial number of the instrument that it holds for; empty: any.
    """

    id: str
    kind: Kind
    delay_s: float
    uncertainty_s: float
    uncertainty_kind: Literal["bound", "standard"]
    made: date
    expires: date
    source: str
    instrument_serial: str = ""

    def doubt(self, today: date, serial: str) -> str:
        """Return why this record cannot be relied on, on a day (UTC), with an instrument; empty: it can."""
        if today > self.expires:
            return f"calibration {self.id} expired on {self.expires}"
        if today < self.made:
            return f"calibration {self.id} is of {self.made}, after the measurement of {today}"
        if self.instrument_serial and self.instrument_serial != serial:
            return (
                f"calibration {self.id} is of instrument {self.instrument_serial}, not {serial or 'unknown'}"
            )
        return ""


@dataclass(frozen=True)
class Correction:
    """What a delay is corrected by.

    Attributes:
        delay_s: To be subtracted from other less reference.
        parts: Parts of uncertainty, by record; a record in the way of both signals cancels.
        doubts: Why the result cannot be conclusive; empty: all records hold.
    """

    delay_s: float = 0.0
    parts: tuple[Part, ...] = ()
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Calibration:
    """All records of a file, by id."""

    records: Mapping[str, Record]
    path: str = ""

    def correction(
        self, reference: Sequence[str], other: Sequence[str], today: date, serial: str
    ) -> Correction:
        """Add up what stands in the way of both signals.

        Args:
            reference: Ids of what delays the reference.
            other: Ids of what delays the other signal.
            today: Day of the measurement, UTC.
            serial: Serial number of the instrument in use.

        Raises:
            CalibrationError: An id that the file does not have, or one that stands twice in one way.
        """
        for name, way in (("reference", reference), ("other", other)):
            for place, key in enumerate(way):
                if key not in self.records:
                    known = ", ".join(sorted(self.records)) or "none"
                    raise CalibrationError(f'{self.path}: {name}: no record "{key}"; there are: {known}')
                if key in way[:place]:
                    raise CalibrationError(f'{self.path}: {name}: record "{key}" stands twice')
        signs = {key: 1.0 for key in other if key not in reference}
        signs |= {key: -1.0 for key in reference if key not in other}
        used = [(self.records[key], sign) for key, sign in signs.items()]
        doubts = (record.doubt(today, serial) for record, _ in used)
        return Correction(
            delay_s=math.fsum(sign * record.delay_s for record, sign in used),
            parts=tuple(
                Part(f"{record.kind.value}:{record.id}", record.uncertainty_kind, record.uncertainty_s)
                for record, _ in used
            ),
            doubts=tuple(doubt for doubt in doubts if doubt),
        )


def load_calibration(path: Path) -> Calibration:
    """Read a calibration file (TOML).

    Raises:
        CalibrationError: The file cannot be read, or a field is missing, unknown or out of range.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise CalibrationError(f"{path}: {error}") from error
    if data.get("schema") != SCHEMA:
        raise CalibrationError(f'{path}: schema: {data.get("schema")!r}, must be "{SCHEMA}"')
    unknown = sorted(data.keys() - {"schema", "record"})
    if unknown:
        raise CalibrationError(f"{path}: unknown field {unknown[0]}; allowed: schema, record")
    tables = data.get("record", [])
    if not isinstance(tables, list) or not all(isinstance(one, dict) for one in cast("list[object]", tables)):
        raise CalibrationError(f"{path}: record: must be tables, [[record]]")
    records: dict[str, Record] = {}
    for number, table in enumerate(cast("list[dict[str, object]]", tables), 1):
        record = _record(table, f"{path}: record {number}")
        if record.id in records:
            raise CalibrationError(f'{path}: record {number}: id: "{record.id}" stands twice')
        records[record.id] = record
    return Calibration(records, str(path))


def _record(table: Mapping[str, object], where: str) -> Record:
    """Check one record."""
    missing = [name for name in _FIELDS if name not in table]
    if missing:
        raise CalibrationError(f"{where}: {missing[0]}: missing")
    unknown = sorted(table.keys() - set(_FIELDS) - set(_OPTIONAL))
    if unknown:
        raise CalibrationError(
            f"{where}: unknown field {unknown[0]}; allowed: {', '.join(_FIELDS + _OPTIONAL)}"
        )
    texts = {
        name: _text(table[name], f"{where}: {name}")
        for name in ("id", "kind", "uncertainty_kind", "source", *_OPTIONAL)
        if name in table
    }
    kinds = [kind.value for kind in Kind]
    if texts["kind"] not in kinds:
        raise CalibrationError(f'{where}: kind: "{texts["kind"]}", must be one of {", ".join(kinds)}')
    if texts["uncertainty_kind"] not in ("bound", "standard"):
        raise CalibrationError(
            f'{where}: uncertainty_kind: "{texts["uncertainty_kind"]}", must be bound or standard'
        )
    if texts["kind"] == Kind.CHANNEL_SKEW.value and "instrument_serial" not in texts:
        raise CalibrationError(
            f"{where}: instrument_serial: missing; a channel's skew is that of one instrument"
        )
    made, expires = _day(table["date"], f"{where}: date"), _day(table["expires"], f"{where}: expires")
    if expires < made:
        raise CalibrationError(f"{where}: expires: {expires}, must not be before date, {made}")
    uncertainty_ps = _number(table["uncertainty_ps"], f"{where}: uncertainty_ps")
    if uncertainty_ps <= 0:
        raise CalibrationError(f"{where}: uncertainty_ps: {uncertainty_ps}, must be above 0")
    return Record(
        texts["id"],
        Kind(texts["kind"]),
        _number(table["delay_ps"], f"{where}: delay_ps") * S_PER_PS,
        uncertainty_ps * S_PER_PS,
        "bound" if texts["uncertainty_kind"] == "bound" else "standard",
        made,
        expires,
        texts["source"],
        texts.get("instrument_serial", ""),
    )


def _text(value: object, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise CalibrationError(f"{where}: {value!r}, must be a text that is not empty")
    return value


def _number(value: object, where: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= PICOSECONDS_MAX:
        return float(value)
    raise CalibrationError(
        f"{where}: {value!r:.40}, must be a finite number of picoseconds, {PICOSECONDS_MAX} at most"
    )


def _day(value: object, where: str) -> date:
    if type(value) is not date:
        raise CalibrationError(f"{where}: {value!r}, must be a day such as 2026-03-31")
    return value
