# SPDX-License-Identifier: Apache-2.0
"""A run with provisioning as a bench leaves it: what a real target said, and trials of one that is played."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from reports.page.render import render_pages
from reports.provisioning.verdict import difference_measurement
from reports.record.context import Context
from reports.record.measurement import Conditions, Limit, Measurement, Subject
from reports.run.folder import RunFolder
from reports.run.outcome import outcome_of
from resources.provisioning.procedure import Round, differences_of
from tests.resources.provisioning.played import PlayedTarget, trials_of

TARGET = "linux-rt"
METHODS = ("twice", "restore", "power-cut", "restart")
SETTINGS = (
    ("service irqbalance", "inactive", "active", "inactive"),
    ("sysctl vm/stat_interval", ">=10", "1", "10"),
    ("sysctl net/ipv4/tcp_rmem", "4096 2097152 16777216", "4096 131072 6291456", "4096 2097152 16777216"),
    ("sysctl net/core/busy_poll", "0", "0", "0"),
    ("idle cpu0/state0", "10", "0", "0"),
    ("idle cpu0/state1", "10", "133", "off"),
    ("offload test0/gro", "on", "off", "on"),
    ("coalesce test0/rx-usecs", "0", "3", "0"),
    ("irq_cpu 30", "last", "0-3", "3"),
    ("irq_priority 30", "fifo:51", "fifo:50", "fifo:51"),
)
"""Name, wanted, before, after."""
OTHERS = (
    ("kernel preempt-rt", "ok", "yes", "yes", ""),
    ("tool ethtool", "ok", "present", "present", ""),
    ("governor all", "not applicable", "performance", "", "no CPU frequency can be governed"),
)
"""Name, status, wanted, found, note."""
Json = dict[str, Any]


def make_provisioned_run(results: Path, target: PlayedTarget) -> RunFolder:
    """Make a run whose target was provisioned, and tried by it."""
    run = RunFolder.create(results, "virtual", "nightly", simulated=True, commit="0" * 40)
    folder = run.evidence_folder("provisioning", TARGET)
    write_provisioning(folder)
    facts = json.loads((folder / "facts-after.json").read_text())
    run.update(target={TARGET: facts}, tools={"bw-traffic": "0.1.0"})
    for record in records_of_trials(run, target):
        run.append(record)
    run.close()
    run.update(outcome=outcome_of(run, finalising=True).outcome)
    for name, page in render_pages(run.path).items():
        (run.path / name).write_text(page)
    return run


def write_provisioning(folder: Path) -> None:
    """Write facts before and after, and what was applied, as `Provisioner.prepare` does."""
    for name, column in (("before", 2), ("after", 3)):
        facts = {
            "hostname": "target-7",
            "kernel": {"release": "6.12.57-rt", "version": "#1 SMP PREEMPT_RT", "preempt_rt": True},
            "machine": {"maker": "a maker", "model": "a model", "serial": "7"},
            "cpu": {"model": "Core i5-1145GRE", "count": 4, "online": "0-3", "governor": ""},
            "memory_bytes": 8_000_000_000,
            "clock": {"source": "tsc", "available": "tsc hpet"},
            "hypervisor": {"present": False, "vendor": "a maker"},
            "nics": [_nic("control0", "off"), _nic("test0", ("off", "on")[column - 2])],
            "interrupts": [{"irq": 30, "name": "test0", "cpus": ("0-3", "3")[column - 2]}],
            "settings": {row[0]: row[column] for row in SETTINGS},
            "versions": {"libc": "glibc 2.36", "openssh": "OpenSSH_9.2p1"},
        }
        (folder / f"facts-{name}.json").write_text(json.dumps(facts, indent=1) + "\n")
    items = [
        *(_item(name, status, wanted, found, note) for name, status, wanted, found, note in OTHERS),
        *(_item(name, "ok", wanted, was, changed=was != now) for name, wanted, was, now in SETTINGS),
    ]
    summary = {
        "type": "summary",
        "verb": "apply",
        "items": len(items),
        "ok": sum(item["status"] == "ok" for item in items),
        "wrong": 0,
        "not_applicable": sum(item["status"] == "not applicable" for item in items),
        "changed": sum(item["changed"] for item in items),
    }
    lines = [json.dumps(each, separators=(",", ":")) for each in (*items, summary)]
    (folder / "apply.ndjson").write_text("\n".join(lines) + "\n")


def records_of_trials(
    run: RunFolder, target: PlayedTarget, repeats: int = 2, upper_facts: int = 0, n_required: int = 2
) -> list[Measurement]:
    """Let the bench try the target, and return a record of each event; one power cut."""
    trials, _ = trials_of(target, run.evidence_folder("provisioning", TARGET))
    twice, restored = trials.provision_and_restore(repeats)
    cuts = [trials.cut_power(1, Random(1))]
    restarts = [trials.restart(number) for number in (1, 2)]
    limit = Limit(upper_facts, None, "a test")
    return [
        record_of(run, method, rounds, limit, n_required - (method == "power-cut"))
        for method, rounds in zip(METHODS, (twice, restored, cuts, restarts), strict=True)
    ]


def record_of(run: RunFolder, method: str, rounds: list[Round], limit: Limit, n_required: int) -> Measurement:
    """Judge what differed, as the suite does."""
    files = dict.fromkeys(path for each in rounds for path in each.evidence)
    context = Context(
        run.run_id,
        "a test",
        Subject("virtual", TARGET, method=method),
        Conditions(run.manifest.profile),
        True,
        tuple(run.evidence(path) for path in files),
    )
    name = f"PROV-{method.upper()}"
    return difference_measurement(differences_of(rounds), name, limit, n_required, context)


def _nic(name: str, gro: str) -> Json:
    return {
        "name": name,
        "mac": f"52:54:00:00:00:{len(name):02}",
        "mtu": 1500,
        "driver": {"driver": "igc", "version": "6.12"},
        "offloads": {"generic-receive-offload": gro, "rx-checksumming": "on [fixed]"},
    }


def _item(name: str, status: str, wanted: str, found: str, note: str = "", *, changed: bool = False) -> Json:
    return {
        "type": "item", "item": name, "status": status, "ok": True, "wanted": wanted, "found": found,
        "changed": changed, "why": "a test", "note": note,
    }  # fmt: skip
