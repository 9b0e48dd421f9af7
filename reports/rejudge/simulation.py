# SPDX-License-Identifier: Apache-2.0
"""Whether a bench is simulated follows from facts: what an emulator leaves behind belies other words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reports.rejudge.arithmetic import Record
from reports.rejudge.facts import leaves

EMULATION = "emulation.ndjson"
ACCELERATORS = ("kvm", "tcg")
_SIGN = re.compile(r"\b(?:qemu|tcg|kvm|kvmclock|wine|dummy-virt|network namespace)\b", re.IGNORECASE)
"""In what a target says of itself: makers, models, clocks, versions."""


def simulation_objections(run: Path, manifest: Mapping[str, Any], records: Sequence[Record]) -> Iterator[str]:
    """Say what belies that the bench of a run, or of a record, is real, or that nobody has said."""
    signs = list(_signs(run, manifest))
    if manifest["simulated"] is None and records:
        yield "run.json: simulated is null beside records: whether the bench is real is not known"
    if manifest["simulated"] is not True and signs:
        yield f"run.json: simulated is {_word(manifest['simulated'])}, but {signs[0]}"
    real = [record["requirement"] for record in records if record["simulated"] is not True]
    if real and signs:
        more = f" and {len(real) - 1} more" if len(real) > 1 else ""
        yield f"measurements.jsonl: {real[0]}{more}: simulated is false, but {signs[0]}"


def _signs(run: Path, manifest: Mapping[str, Any]) -> Iterator[str]:
    accelerator = manifest["host"].get("accelerator")
    if accelerator in ACCELERATORS:
        yield f"host.accelerator is {accelerator!r}"
    for target, facts in manifest["target"].items():
        for name, value in leaves(facts):
            last = name.rpartition(".")[2]
            if last == "wine" or (isinstance(value, str) and _SIGN.search(value)):
                yield f"target.{target}.{name} is {value!r}"
    for path in sorted((run / "evidence").rglob(EMULATION)):
        yield f"{path.relative_to(run)} is there"


def _word(value: object) -> str:
    return "null" if value is None else str(value).lower()
