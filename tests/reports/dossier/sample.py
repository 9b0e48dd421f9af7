# SPDX-License-Identifier: Apache-2.0
"""Run folders for tests of the dossier: those of `sample_run`, with what a real bench adds."""

from __future__ import annotations

import copy
import dataclasses
import datetime
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from reports.dossier.gather import NOTHING_ASKED, named_file
from reports.dossier.gather import gather as gather_dossier
from reports.dossier.model import Dossier, NamedFile, Request
from reports.record.measurement import (
    RULE,
    SCHEMA,
    Conditions,
    Evidence,
    Limit,
    Measurement,
    Outcome,
    Subject,
    Uncertainty,
    UncertaintyPart,
    margin_of,
)
from reports.run.folder import RunFolder
from reports.run.manifest import EARLIER, EARLIER_SUITE
from reports.run.provenance import OWN_NAME
from reports.run.seal import fingerprint, seal
from reports.run.selected import SelectedSuite
from tests.reports.sample_run import Disturbance, make_run

ROOT = Path(__file__).resolve().parents[3]
DAQ12 = ROOT / "robot" / "daq_replay" / "requirements" / "daq12.toml"
TARGET = "linux-rt"
FACTS: dict[str, Any] = {
    "hostname": "target-7",
    "kernel": {"release": "6.12.57-rt", "version": "#1 SMP PREEMPT_RT", "command_line": "quiet isolcpus=3"},
    "cpu": {"model": "Core i5-1145GRE", "count": 4},
    "memory_bytes": 8_000_000_000,
    "nics": [
        {"name": "eth0", "driver": {"driver": "igc", "version": "6.12", "firmware-version": "1057:8754"}}
    ],
    "settings": {"sysctl vm/swappiness": "0", "irq_cpu 131": "3"},
}
INSTRUMENTS: dict[str, Any] = {
    "scope": {
        "kind": "oscilloscope",
        "identity": "TEKTRONIX,MSO64B,B012345,CF:91.1CT FV:2.0.3",
        "maker": "TEKTRONIX",
        "model": "MSO64B",
        "serial": "B012345",
        "firmware": "2.0.3",
        "calibration": {"certificate": "K-2026-118", "date": "2026-01-15", "due": "2100-01-15"},
        "limits": {"sample_interval_ns": 0.16, "channels": 4},
    },
    "card": {
        "kind": "timecard",
        "identity": None,
        "maker": "Safran",
        "model": "TSync",
        "serial": "77",
        "firmware": None,
        "calibration": {"certificate": "K-2026-9", "date": "2026-01-15", "due": "2100-01-15"},
        "limits": {},
    },
}
WIRING = {"target.eth0": "switch 3, port 7", "scope.1": "target GPIO 4, 1.00 m RG58"}
XUNIT = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="Robot"><testcase classname="Robot.Clocks" name="Clock Holds Under Load" time="0.001">
<skipped message="profile ci measures no clock under load" type="SkipExecution"/></testcase>
<testcase classname="Robot.Daq" name="DAQ-010" time="1"/></testsuite>
"""
APPLIED = (
    ("kernel preempt-rt", "ok", "yes", "yes", False, ""),
    ("sysctl vm/swappiness", "ok", "0", "60", True, ""),
    ("governor all", "not applicable", "performance", "", False, "no CPU frequency can be governed"),
)
"""Item, status, wanted, found, changed, note."""


KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
"""Seals the runs of these tests."""


def gather(runs: Sequence[Path], asked: Request = NOTHING_ASKED) -> Dossier:
    """Gather a dossier of runs that have to be sealed by the key of these tests."""
    return gather_dossier(runs, dataclasses.replace(asked, sealed_by=(fingerprint(KEY),)))


def asked(tmp_path: Path, waivers: str = "", **options: Any) -> Request:
    """Return a request with these waivers; none: without a file of them."""
    files: list[NamedFile] = []
    if waivers:
        path = tmp_path / "waivers.toml"
        path.write_text('[waivers]\nschema = "benchwright.waivers/1"\n' + waivers, encoding="utf-8")
        files.append(named_file("waivers", path))
    fields: dict[str, Any] = {"title": None, "date": None, "operator": None, "reviewer": None}
    return Request(**{**fields, **options}, files=tuple(files))


def waiver(date: datetime.date | None = None, **keys: str | int) -> str:
    """Return a waiver in TOML, of today (UTC) unless said otherwise."""
    given = {"id": "W-1", "reason": "agreed", "approver": "A. Reviewer", **keys}
    lines = [f"{key} = {json.dumps(value)}" for key, value in given.items()]
    day = date or datetime.datetime.now(datetime.UTC).date()
    return "\n".join(["[[waiver]]", *lines, f"date = {day}\n"])


def conceding(requirement: str, name: str = "W-1", stack: str = "kernel") -> str:
    """Return a waiver that accepts a requirement on the target of these tests."""
    return waiver(id=name, requirement=requirement, target=f"{TARGET} on bench-1", stack=stack)


def write_benches(path: Path, *names: str, since: str = "2026-01-01", until: str = "") -> Path:
    """Write a list of benches that all have the key of these tests."""
    tables = [
        f'[[bench]]\nname = "{name}"\nfingerprint = "{fingerprint(KEY)}"\nsince = {since}\n'
        + (f"until = {until}\n" if until else "")
        for name in names
    ]
    path.write_text('[benches]\nschema = "benchwright.benches/1"\n\n' + "\n".join(tables))
    return path


def add_bench_facts(run: RunFolder, instruments: dict[str, Any] | None, requirements: Path | None) -> None:
    """Add what suites and bench leave in a run folder beside measurements."""
    run.update(target={TARGET: FACTS})
    if instruments is not None:
        run.update(host={"instruments": instruments, "wiring": WIRING})
    if requirements is not None:
        kept = run.evidence_folder("requirements") / requirements.name
        kept.write_bytes(requirements.read_bytes())
    folder = run.evidence_folder("provisioning", TARGET)
    before = copy.deepcopy(FACTS)
    before["settings"]["sysctl vm/swappiness"] = "60"
    (folder / "facts-before.json").write_text(json.dumps(before))
    (folder / "facts-after.json").write_text(json.dumps(FACTS))
    keys = ("item", "status", "wanted", "found", "changed", "note")
    rest = {"ok": True, "why": "a test"}
    items = [{"type": "item", **dict(zip(keys, item, strict=True)), **rest} for item in APPLIED]
    counts = {"items": 3, "ok": 2, "wrong": 0, "not_applicable": 1, "changed": 1}
    lines = [json.dumps(item) for item in (*items, {"type": "summary", "verb": "apply", **counts})]
    (folder / "apply.ndjson").write_text("\n".join(lines) + "\n")
    (run.path / "xunit.xml").write_text(XUNIT)
    (run.path / "qualification.html").write_text("<!doctype html>\n")


def finished_run(
    results: Path,
    *disturbances: Disturbance,
    simulated: bool = False,
    instruments: dict[str, Any] | None = INSTRUMENTS,
    requirements: Path | None = DAQ12,
    seed: int = 1,
) -> RunFolder:
    """Make a finalised run of a bench, real unless said otherwise, with one attempt for each disturbance."""
    run = make_run(results, *disturbances, seed=seed, simulated=simulated, close=False)
    add_bench_facts(run, instruments, requirements)
    run.close()
    seal(run.path, KEY)
    run.finalise()
    return run


def record(outcome: Outcome = "pass", reason: str = "", **changes: Any) -> Measurement:
    """Return a record of stream 31, with a value that suits its outcome; U is 1 ms, the limit 50 ms."""
    value_ns = {"pass": 8_000_000, "fail": 60_000_000, "inconclusive": 49_500_000}.get(outcome)
    value_ns = changes.pop("value", value_ns)
    limit = changes.pop("limit", Limit(50_000_000, None, "site specification 7"))
    uncertainty = Uncertainty.from_parts([UncertaintyPart("clock_offset", "bound", 1_000_000)])
    fields: dict[str, Any] = {
        "schema": SCHEMA,
        "run_id": "run-1",
        "test": "Daq.Stream 31",
        "requirement": "DAQ-031",
        "quantity": "one_way_latency",
        "statistic": "max",
        "value": value_ns,
        "unit": "ns",
        "n": 600 if value_ns is not None else 0,
        "n_required": 99,
        "lost": 0,
        "allowed_lost": 0,
        "limit": limit,
        "uncertainty": uncertainty,
        "margin": margin_of(value_ns, limit, uncertainty),
        "rule": RULE,
        "outcome": outcome,
        "reason": reason,
        "subject": Subject("bench-1", TARGET, "kernel", "two-way", "31"),
        "conditions": Conditions("acceptance", "aligned-12"),
        "simulated": False,
        "evidence": (),
        "time_utc": "2026-11-22T04:00:00.000000Z",
    }
    return Measurement(**{**fields, **changes})


def small_run(
    results: Path,
    *records: Measurement,
    simulated: bool = False,
    instruments: dict[str, Any] | None = INSTRUMENTS,
    requirements: str = "",
    facts: dict[str, Any] = FACTS,
    earlier: str = "",
    asked: tuple[SelectedSuite, ...] = (),
    commit: str | None = "1" * 40,
    source: str = "",
) -> RunFolder:
    """Make a finalised run that holds these records and one file of evidence.

    Args:
        results: Where.
        records: As `record` makes them; run id and evidence become this run's.
        simulated: What the manifest says.
        instruments: None: not recorded.
        requirements: Text of the requirements file that the run kept; empty: it kept none.
        facts: What was read back from the target.
        earlier: Id of the run that it repeats; empty: none.
        commit: Of the suites.
        source: Version and files of a tree without one.
        asked: What its suites asked; empty: it is of the version before, and all that it kept is asked.
    """
    run = RunFolder.create(results, "bench-1", "acceptance", simulated=simulated, commit=commit)
    tools = {"bw-traffic": "0.1.0"} | ({OWN_NAME: source} if source else {})
    run.update(target={TARGET: facts}, host={"hostname": "lab-3"}, tools=tools)
    if instruments is not None:
        run.update(host={"instruments": instruments, "wiring": WIRING})
    run.update(asked=asked)
    if requirements:
        (run.evidence_folder("requirements") / "site.toml").write_text(requirements)
    if earlier:
        run.add_attempt(EARLIER_SUITE, "inconclusive", f"{EARLIER}{earlier}")
        run.add_attempt(EARLIER_SUITE, "pass", "this run")
    answer = run.evidence_folder("daq_replay") / "answer.ndjson"
    answer.write_text('{"type":"ready"}\n')
    for each in records:
        evidence: tuple[Evidence, ...] = each.evidence or (run.evidence(answer),)
        time_utc = run.manifest.start_utc
        run.append(dataclasses.replace(each, run_id=run.run_id, evidence=evidence, time_utc=time_utc))
    run.close()
    seal(run.path, KEY)
    run.finalise()
    return run


def requirements_text(*ids: str, upper_us: int = 50_000) -> str:
    """Return a requirements file on streams 31, 32, … with these ids."""
    tables = [
        f'[[requirement]]\nid = "{name}"\nstream = {31 + number}\nquantity = "one_way_latency"\n'
        f'statistic = "max"\nupper_us = {upper_us}\nlost = 0\nsource = "site specification 7"\n'
        for number, name in enumerate(ids)
    ]
    head = '[requirements]\nschema = "benchwright.requirements/2"\nname = "site"\npattern = "site"\n\n'
    return head + "\n".join(tables)
