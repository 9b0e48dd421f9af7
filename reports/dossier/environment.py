# SPDX-License-Identifier: Apache-2.0
"""The environment as it was read back: configuration of targets, provisioning, impairment, Robot's tests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree

from reports.clock_sync.disturbance import load_disturbance
from reports.clock_sync.trial import SCHEMA as TRIAL_SCHEMA
from reports.clock_sync.trial import TRIAL, TrialFacts
from reports.daq_replay.known_delay import KnownDelay
from reports.dossier.errors import DossierError
from reports.dossier.model import Configuration, FactTable, Impairment, Pair, Provisioning, Setting
from reports.errors import ReportError
from reports.page.facts import fact_groups, flatten, lasting_facts, list_of_tables
from reports.record.document import read_document
from reports.record.json_text import load_json
from reports.record.measurement import Measurement
from reports.run.folder import EVIDENCE
from reports.units import format_value

PROVISIONING = "provisioning"
IDENTITY: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("host name", ("hostname",)),
    ("maker", ("machine.maker", "hypervisor.vendor", "system.vendor")),
    ("model", ("machine.model", "hypervisor.product", "cpu.hardware", "system.product")),
    ("serial number", ("machine.serial", "serial")),
    ("firmware", ("machine.firmware", "firmware", "bios")),
    ("processor", ("cpu.model",)),
    ("kernel", ("kernel.release", "os.release")),
    ("kernel version", ("kernel.version", "os.version")),
    ("kernel command line", ("kernel.command_line",)),
    ("system", ("versions.distribution", "os.name")),
    ("clock source", ("clock.source",)),
)
"""Lines by which a target is known, and the facts that they are taken from: the first that is there."""


def configuration_sha256(facts: dict[str, Any]) -> str:
    """Return the hash of a target's configuration: of all facts but those that change by themselves."""
    return hashlib.sha256(json.dumps(lasting_facts(facts), sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ReadBack:
    """Facts of one target in one run."""

    run_id: str
    facts: dict[str, Any]


def configurations(found: Sequence[ReadBack]) -> tuple[Configuration, ...]:
    """Return the configurations that a target had, by the first run that saw each."""
    grouped: dict[str, list[ReadBack]] = {}
    for each in found:
        grouped.setdefault(configuration_sha256(each.facts), []).append(each)
    return tuple(
        Configuration(
            sha256=digest,
            run_ids=tuple(each.run_id for each in same),
            identity=_identity(same[0].facts),
            facts=fact_tables("", same[0].facts),
        )
        for digest, same in grouped.items()
    )


def configuration_differences(found: Sequence[ReadBack]) -> list[str]:
    """Return in words what differs between the first run's configuration and another's."""
    shown: list[str] = []
    first = dict(_flat(lasting_facts(found[0].facts)))
    for each in found[1:]:
        other = dict(_flat(lasting_facts(each.facts)))
        for key in sorted(first.keys() | other.keys()):
            before, after = first.get(key, "not recorded"), other.get(key, "not recorded")
            text = f"{key}: {before} in run {found[0].run_id}, {after} in run {each.run_id}"
            if before != after and text not in shown:
                shown.append(text)
    return shown


def _flat(facts: dict[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield nested facts as (dotted key, text); items of a list of tables are known by their name."""
    for key, value in facts.items():
        if isinstance(value, dict):
            yield from ((f"{key}.{name}", text) for name, text in _flat(cast("dict[str, Any]", value)))
        elif tables := list_of_tables(value):
            for number, item in enumerate(tables):
                yield from ((f"{key}.{item.get('name', number)}.{n}", text) for n, text in _flat(item))
        else:
            yield from flatten({key: value})


def _identity(facts: dict[str, Any]) -> tuple[Pair, ...]:
    flat = dict(_flat(facts))
    lines = [
        Pair(name, next((flat[key] for key in keys if flat.get(key) not in (None, "", "unknown")), None))
        for name, keys in IDENTITY
    ]
    lines += [Pair(f"driver of {name}", text) for name, text in _drivers(facts)]
    return tuple(lines)


def _drivers(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """Return name, and driver with its version and firmware, of each network interface."""
    nics = facts.get("nics")
    found: list[tuple[str, str]] = []
    for nic in cast("list[object]", nics) if isinstance(nics, list) else []:
        if not isinstance(nic, dict):
            continue
        table = cast("dict[str, Any]", nic)
        driver = table.get("driver")
        if isinstance(driver, dict):
            named = cast("dict[str, str]", driver)
            words = [named.get("driver", ""), named.get("version", "")]
            words += [f"firmware {named['firmware-version']}"] if named.get("firmware-version") else []
            found.append((str(table.get("name", "?")), " ".join(word for word in words if word)))
        elif driver:
            found.append((str(table.get("name", "?")), str(driver)))
    return found


def fact_tables(title: str, facts: dict[str, Any]) -> tuple[FactTable, ...]:
    """Return facts as tables, in the order of the manifest."""
    return tuple(
        FactTable(group.title.removeprefix(": "), tuple(Pair(key, text) for key, text in group.rows))
        for group in fact_groups(title, facts)
        if group.rows
    )


def provisioning_of(run: Path, run_id: str, target: str) -> Provisioning | None:
    """Return what provisioning did to a target in a run; None: nothing is recorded of it.

    Raises:
        DossierError: Its evidence cannot be read.
    """
    folder = run / EVIDENCE / PROVISIONING / target
    applied = folder / "apply.ndjson"
    if not applied.is_file():
        return None
    try:
        lines = [load_json(line) for line in applied.read_text(encoding="utf-8").split("\n") if line]
        before, after = (_facts(folder / f"facts-{when}.json") for when in ("before", "after"))
    except (OSError, ValueError) as error:
        raise DossierError(f"{run.name}: {EVIDENCE}/{PROVISIONING}/{target}: {error}") from error
    items: list[object] = [line for line in lines if isinstance(line, dict)]
    return Provisioning(
        run_id,
        tuple(
            Setting(
                item=str(item.get("item", "")),
                wanted=str(item.get("wanted", "")),
                found=str(item.get("found", "")),
                status=str(item.get("status", "")),
                changed=bool(item.get("changed")),
                note=str(item.get("note", "")),
            )
            for item in cast("list[dict[str, Any]]", items)
            if item.get("type") == "item"
        ),
        tuple(_changed(before, after)),
    )


def _facts(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    found: object = load_json(file.read_text(encoding="utf-8"))
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _changed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    if not before or not after:
        return []
    old, new = dict(_flat(lasting_facts(before))), dict(_flat(lasting_facts(after)))
    return [
        f"{key}: {old.get(key, 'absent')} before, {new.get(key, 'absent')} after"
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    ]


def impairments_of(run: Path, records: Sequence[Measurement]) -> tuple[Impairment, ...]:
    """Return the impairments that records name, with what was seen of them, and delays that checks made."""
    found: dict[tuple[str, str], str | None] = {}
    several = len({record.subject.target for record in records}) > 1
    for record in records:
        conditions = record.conditions
        if conditions.impairment != "none":
            where = conditions.phase or record.quantity
            key = (f"{record.subject.target}: {where}" if several else where, conditions.impairment)
            found[key] = found.get(key) or _seen(run, record)
    shown = [Impairment(where, asked, seen) for (where, asked), seen in found.items()]
    for file in sorted((run / EVIDENCE).glob("**/known_delay.json")):
        try:
            check = KnownDelay.read(file)
        except (ReportError, OSError):
            continue
        producers = ", ".join(str(producer) for producer in check.producers)
        place = file.parent.relative_to(run / EVIDENCE).as_posix()
        shown.append(
            Impairment(
                where=f"{place}: known-delay check, producer {producers}",
                asked=format_value(check.applied_ns, "ns"),
                read_back=f"{format_value(check.measured_ns, 'ns')} found,"
                f" U = {format_value(check.uncertainty.expanded, 'ns')}: {check.outcome}",
            )
        )
    return tuple(shown)


def _seen(run: Path, record: Measurement) -> str | None:
    """Return what a clock's trial saw of its impairment: the packets' time through it, and what else."""
    places = [(run / each.path).parent for each in record.evidence if each.path.endswith(f"/{TRIAL}")]
    words: list[str] = []
    for place in places:
        try:
            through_ns = read_document(TrialFacts, place / TRIAL, TRIAL_SCHEMA).server_to_target_ns
            disturbance = load_disturbance(place)
        except (ReportError, OSError):
            continue
        if through_ns is not None:
            words.append(f"packets of the time server took {format_value(through_ns, 'ns')} through the node")
        words += [event.found for event in (disturbance.events if disturbance else ()) if event.found]
    return "; ".join(words) or None


@dataclass(frozen=True, slots=True)
class TestNotes:
    """Robot's tests that were left out or failed: name, and what Robot says of it."""

    skipped: tuple[Pair, ...]
    failed: tuple[Pair, ...]


def test_notes(run: Path) -> TestNotes:
    """Return what Robot says of tests that did not pass, from its `xunit.xml`; nothing without one.

    Raises:
        DossierError: The file is damaged.
    """
    file = run / "xunit.xml"
    if not file.is_file():
        return TestNotes((), ())
    try:
        root = ElementTree.parse(file).getroot()  # noqa: S314 - Robot's own file, whose hash was checked before
    except (ElementTree.ParseError, OSError) as error:
        raise DossierError(f"{run.name}: xunit.xml: {error}") from error
    skipped: list[Pair] = []
    failed: list[Pair] = []
    for case in root.iter("testcase"):
        name = f"{case.get('classname', '')}: {case.get('name', '')}"
        for child in case:
            if child.tag == "skipped":
                skipped.append(Pair(name, child.get("message")))
            elif child.tag in ("failure", "error"):
                failed.append(Pair(name, child.get("message")))
    return TestNotes(tuple(skipped), tuple(failed))
