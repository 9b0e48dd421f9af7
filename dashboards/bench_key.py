# SPDX-License-Identifier: Apache-2.0
"""The bench key: what a value was measured with. Another key starts a new baseline instead of an alarm.

It is made of facts of the manifest that change what a bench measures: kernels, processors, the accelerator of
guests, clock sources, wiring, instruments with their calibration. It holds nothing that differs from run to
run, for a value of one target nothing of another, and of instruments only those that took part: an
oscilloscope in what was measured on edges, and there with the identity that was read from it.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, cast

from reports.run.manifest import Manifest

HOST_FACTS = ("system", "kernel", "cpu_model", "cpus", "accelerator")
TARGET_FACTS = (
    ("kernel", "release"),
    ("kernel", "version"),
    ("cpu", "model"),
    ("cpu", "count"),
    ("clock", "source"),
    ("hypervisor", "product"),
)
_INSTRUMENTS, _WIRING = "instruments", "wiring"
_NAME_DIGITS = 12


def bench_facts(manifest: Manifest) -> dict[str, str]:
    """Return the facts that make the bench key, by their place in the manifest; absent ones left out."""
    found: dict[str, str] = {}
    for name in HOST_FACTS:
        _keep(found, f"host.{name}", manifest.host.get(name))
    for name, text in _table(manifest.host.get(_WIRING)).items():
        _keep(found, f"host.{_WIRING}.{name}", text)
    for name, facts in _table(manifest.host.get(_INSTRUMENTS)).items():
        for key, value in _table(facts).items():
            _keep(found, f"host.{_INSTRUMENTS}.{name}.{key}", value)
    for target, facts in manifest.target.items():
        for path in TARGET_FACTS:
            _keep(found, ".".join((target, *path)), _at(facts, path))
    return dict(sorted(found.items()))


def key_of_facts(facts: dict[str, str], target: str | None = None, *, of_edges: bool = False) -> str:
    """Return the bench key of such facts: twelve hex digits.

    Args:
        facts: As `bench_facts` returns them.
        target: Target that was measured: others are left out; None: all of them.
        of_edges: Whether oscilloscopes took part.
    """
    if target is not None:
        facts = {n: v for n, v in facts.items() if n.startswith(("host.", f"{target}."))}
    left_out = () if of_edges else _instruments(facts, "oscilloscope")
    if target is not None:
        left_out += tuple(n for n in _instruments(facts, "timecard") if not n.endswith(f"-{target}."))
    facts = {n: v for n, v in facts.items() if not n.startswith(left_out)}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:_NAME_DIGITS]


def changes(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Return in words which facts differ between two runs: `host.kernel: 6.1 -> 6.12`.

    A fact that only one of them has (a target that was not measured) is no change of the bench.
    """
    both = sorted(before.keys() & after.keys())
    return [f"{name}: {before[name]} -> {after[name]}" for name in both if before[name] != after[name]]


def _instruments(facts: dict[str, str], kind: str) -> tuple[str, ...]:
    """Return what the names of facts of instruments of a kind begin with."""
    begin, end = f"host.{_INSTRUMENTS}.", ".kind"
    found = (n for n, v in facts.items() if v == kind and n.startswith(begin) and n.endswith(end))
    return tuple(name.removesuffix("kind") for name in found)


def _table(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _at(facts: object, path: tuple[str, ...]) -> object:
    for name in path:
        if not isinstance(facts, dict):
            return None
        facts = cast("dict[str, object]", facts).get(name)
    return facts


def _keep(found: dict[str, str], name: str, value: Any) -> None:
    if value not in (None, "", [], {}):
        found[name] = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
