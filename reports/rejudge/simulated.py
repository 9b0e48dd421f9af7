# SPDX-License-Identifier: Apache-2.0
"""Whether a run may say that it is not simulated: what target, host and raw data say of an emulator.

The flag `simulated` is one bit of manifest and records. What they run on is said in many places: in facts of
the target, in those that provisioning kept, by the bench's accelerator, on consoles. Each of them is a sign.
A bit of a processor (`hypervisor.present`) is none where a maker is named: Windows sets it on real machines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reports.rejudge.again import Record
from reports.rejudge.facts import leaves

EMULATORS = r"\b(qemu|kvm|tcg|bochs|wine|dummy-virt)\b"
SIGNS: tuple[tuple[str, str], ...] = (
    (r"(machine|hypervisor|system)\.(maker|model|firmware|vendor|product)", EMULATORS),
    (r"cpu\.(model|hardware)", EMULATORS),
    (r"clock\.(source|available)", r"\bkvm-clock\b"),
    (r"versions\.wine", r"."),
    (r"nics\.\d+\.driver(\.(driver|name))?", r"^(virtio\w*|veth)$"),
)
"""The end of a fact's dotted name, and what its text is where an emulator or a namespace is behind it."""
HOST_SIGNS: tuple[tuple[str, str], ...] = (
    (r"accelerator", r"^(?!none$)."),
    (r"(environment|wiring\..*)", r"\b(network namespace|netns|qemu)\b"),
)
CONSOLE = re.compile(
    rb"DMI: QEMU|Hypervisor detected: \w+|paravirtualized kernel on (?!bare )\w+|[Mm]odel: linux,dummy-virt"
)
"""What a kernel says while it boots as a guest."""
SHOWN = 3


def simulation_discrepancies(run: Path, manifest: Mapping[str, Any], records: Sequence[Record]) -> list[str]:
    """Say where `simulated` is not what the run's own facts say.

    Args:
        run: The run folder.
        manifest: Its manifest.
        records: All its records.
    """
    said = manifest["simulated"]
    found: list[str] = []
    if said is None and records:
        found.append(f"run.json: simulated is null beside {len(records)} records; allowed: true, false")
    real = sum(not record["simulated"] for record in records)
    if real == 0 and said is not False:
        return found
    signs = list(signs_of_emulation(run, manifest))
    if signs:
        more = f"; and {len(signs) - SHOWN} more" if len(signs) > SHOWN else ""
        which = "run.json: simulated is false" if said is False else f"{real} records are not simulated"
        found.append(f"{which}, but {'; '.join(signs[:SHOWN])}{more}")
    return found


def signs_of_emulation(run: Path, manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield each place of a run that says that an emulator or a namespace is behind it, in words."""
    yield from _signs(manifest["host"], HOST_SIGNS, "run.json: host.")
    yield from _signs(manifest["target"], SIGNS, "run.json: target.")
    evidence = run / "evidence"
    for path in sorted((evidence / "provisioning").glob("*/facts-*.json")):
        try:
            kept = json.loads(path.read_text("utf-8"))
        except (ValueError, RecursionError):
            continue  # `fact_discrepancies` says so
        yield from _signs(kept, SIGNS, f"{path.relative_to(run).as_posix()}: ")
    for path in sorted(evidence.rglob("emulation.ndjson")):
        yield f"{path.relative_to(run).as_posix()} is of an emulator"
    for path in sorted((evidence / "consoles").rglob("*.log")):
        if path.is_file() and (line := CONSOLE.search(path.read_bytes())):
            yield f"{path.relative_to(run).as_posix()} says {line[0].decode()!r}"


def _signs(facts: Any, signs: Sequence[tuple[str, str]], where: str) -> Iterator[str]:
    every = dict(leaves(facts))
    for name, value in every.items():
        for key, text in signs:
            if re.search(rf"(^|\.){key}$", name) and re.search(text, str(value or ""), re.IGNORECASE):
                yield f"{where}{name} is {value!r}"
        # A board has no maker's name; its device tree has a node of the hypervisor's.
        base = name.removesuffix("present")
        is_flag = base != name and base.endswith("hypervisor.") and value is True
        if is_flag and not every.get(f"{base}vendor") and not every.get(f"{base}product"):
            yield f"{where}{name} is true, of a machine without a maker"
