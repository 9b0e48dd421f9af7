# SPDX-License-Identifier: Apache-2.0
"""Instruments of a run with their calibration, and what rests on one that was out of it.

The manifest has them under `host.instruments` (by name: kind, identity, maker, model, serial, firmware,
calibration, limits) and `host.wiring` (by name: text); runs before these were recorded have neither.
"""

from __future__ import annotations

import datetime
from typing import Any, cast

from reports.dossier.model import Calibration, Instrument, Pair
from reports.page.facts import flatten
from reports.record.measurement import Measurement, parse_utc
from reports.run.manifest import Manifest
from reports.timed_edges.trial import FOLDER as TIMED_EDGES

OSCILLOSCOPE = "oscilloscope"


def instruments_of(manifest: Manifest) -> tuple[Instrument, ...] | None:
    """Return the instruments of a run; None: not recorded."""
    found = manifest.host.get("instruments")
    if not isinstance(found, dict):
        return None
    tables = cast("dict[str, object]", found)
    return tuple(_instrument(name, _table(facts), manifest) for name, facts in tables.items())


def wiring_of(manifest: Manifest) -> tuple[Pair, ...] | None:
    """Return what is connected to what; None: not recorded."""
    found = manifest.host.get("wiring")
    if not isinstance(found, dict):
        return None
    return tuple(Pair(name, text) for name, text in flatten(cast("dict[str, Any]", found)))


def _table(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _instrument(name: str, facts: dict[str, Any], manifest: Manifest) -> Instrument:
    calibration, remark = _calibration(facts.get("calibration"), manifest)
    return Instrument(
        name=name,
        kind=_text(facts.get("kind")) or "instrument",
        identity=_text(facts.get("identity")),
        maker=_text(facts.get("maker")),
        model=_text(facts.get("model")),
        serial=_text(facts.get("serial")),
        firmware=_text(facts.get("firmware")),
        calibration=calibration,
        limits=tuple(Pair(key, text) for key, text in flatten(_table(facts.get("limits")))),
        remark=remark,
    )


def _text(value: object) -> str | None:
    return None if value is None or value == "" else str(value)


def _calibration(value: object, manifest: Manifest) -> tuple[Calibration | None, str]:
    """Return the calibration, and what is to be said of it: out of force on any day of the run."""
    if not isinstance(value, dict):
        return None, ""
    table = cast("dict[str, object]", value)
    date, due = _text(table.get("date")), _text(table.get("due"))
    remark = ""
    first = parse_utc(manifest.start_utc).date()
    last = parse_utc(manifest.end_utc or manifest.start_utc).date()
    due_day, made_day = _day(due), _day(date)
    if due is not None and due_day is None:
        remark = f"calibration.due: {due!r} is no date YYYY-MM-DD: not taken as in force"
    elif due_day is not None and due_day < last:
        remark = f"calibration expired on {due}, the run was on {last}"
    elif date is not None and made_day is None:
        remark = f"calibration.date: {date!r} is no date YYYY-MM-DD: not taken as in force"
    elif made_day is not None and made_day > first:
        remark = f"calibrated on {date}, after the run began on {first}"
    return Calibration(_text(table.get("certificate")), date, due, not remark), remark


def _day(text: str | None) -> datetime.date | None:
    try:
        return datetime.date.fromisoformat(text) if text else None
    except ValueError:
        return None


def doubts_by(instruments: tuple[Instrument, ...] | None, record: Measurement) -> list[str]:
    """Return why a record rests on an instrument that was not in calibration; empty: it does not.

    On an oscilloscope rest the timed edges. On everything else (a timecard, a card of unknown kind) rests
    every record of the run: what was not shown to be independent of it is not taken to be.
    """
    edges = any(each.path.startswith(f"evidence/{TIMED_EDGES}/") for each in record.evidence)
    return [
        f"{each.name}: {each.remark}"
        for each in instruments or ()
        if each.remark and (each.kind != OSCILLOSCOPE or edges)
    ]
