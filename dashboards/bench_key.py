# SPDX-License-Identifier: Apache-2.0
"""The bench key: what a value was measured with. Another key starts a new baseline instead of an alarm.

It is made of facts of the manifest that change what a bench measures: kernels, processors, the accelerator of
guests, clock sources, instruments with their calibration where the manifest has them. It holds nothing that
differs from run to run, and for a value of one target nothing of another.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, cast

from reports.manifest import Manifest

HOST_FACTS = ("system", "kernel", "cpu_model", "cpus", "accelerator")
TARGET_FACTS = (
    ("kernel", "release"),
    ("kernel", "version"),
    ("cpu", "model"),
    ("cpu", "count"),
    ("clock", "source"),
    ("hypervisor", "product"),
)
INSTRUMENT_FACTS = ("instruments", "oscilloscopes", "calibration")
"""Keys of `host` and `tools` that are taken whole."""
_NAME_DIGITS = 12


def bench_facts(manifest: Manifest) -> dict[str, str]:
    """Return the facts that make the bench key, by their place in the manifest; absent ones left out."""
    found: dict[str, str] = {}
    for name in (*HOST_FACTS, *INSTRUMENT_FACTS):
        _keep(found, f"host.{name}", manifest.host.get(name))
    for name in INSTRUMENT_FACTS:
        _keep(found, f"tools.{name}", manifest.tools.get(name))
    for target, facts in manifest.target.items():
        for path in TARGET_FACTS:
            _keep(found, ".".join((target, *path)), _at(facts, path))
    return dict(sorted(found.items()))


def key_of_facts(facts: dict[str, str], target: str | None = None) -> str:
    """Return the bench key of such facts: twelve hex digits; of a target those of the bench and its own."""
    if target is not None:
        facts = {n: v for n, v in facts.items() if n.startswith(("host.", "tools.", f"{target}."))}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:_NAME_DIGITS]


def changes(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Return in words which facts differ between two runs: `host.kernel: 6.1 -> 6.12`.

    A fact that only one of them has (a target that was not measured) is no change of the bench.
    """
    both = sorted(before.keys() & after.keys())
    return [f"{name}: {before[name]} -> {after[name]}" for name in both if before[name] != after[name]]


def _at(facts: object, path: tuple[str, ...]) -> object:
    for name in path:
        if not isinstance(facts, dict):
            return None
        facts = cast("dict[str, object]", facts).get(name)
    return facts


def _keep(found: dict[str, str], name: str, value: Any) -> None:
    if value not in (None, "", [], {}):
        found[name] = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
