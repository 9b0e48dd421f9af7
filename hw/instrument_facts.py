# SPDX-License-Identifier: Apache-2.0
"""Facts of a bench's instruments for the manifest: what its file says, and what they said of themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hw.bench import BenchSpec, TimecardSpec
from hw.oscilloscopes import OscilloscopeSpec

_IDENTITY = ("maker", "model", "serial", "firmware")


def instrument_facts(spec: BenchSpec, identities: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return the instruments of a bench by name, each with the same keys.

    Args:
        spec: The bench.
        identities: Replies to `*IDN?` of those that were opened in this run, by name.
    """
    found = {
        name: _instrument("oscilloscope", identities.get(name), _calibration(scope), _limits(scope))
        for name, scope in spec.oscilloscopes.items()
    }
    for kind, target in spec.targets.items():
        if target.timecard is not None:
            found[f"timecard-{kind}"] = _instrument("timecard", None, None, _card_limits(target.timecard))
    return found


def wiring_facts(spec: BenchSpec) -> dict[str, str]:
    """Return what is connected to what, by name: in the file's words, and the real links of its topology."""
    if spec.topology is None or spec.virtual is not None:
        return spec.wiring
    return {**spec.topology.words(), **spec.wiring}


def with_known(
    now: Mapping[str, dict[str, Any]], before: Mapping[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Return instruments as they are now; one that has said nothing since is who it said it was before."""
    said = {name: facts for name, facts in before.items() if facts["identity"]}
    silent = {name for name, facts in now.items() if not facts["identity"]}
    return {**before, **now, **{name: said[name] for name in said.keys() & silent}}


def _instrument(
    kind: str, identity: str | None, calibration: dict[str, str] | None, limits: dict[str, Any]
) -> dict[str, Any]:
    parts = [part.strip() for part in identity.split(",", 3)] if identity else []
    said = dict(zip(_IDENTITY, parts, strict=False))
    return {
        "kind": kind,
        "identity": identity,
        **{name: said.get(name) or None for name in _IDENTITY},
        "calibration": calibration,
        "limits": limits,
    }


def _calibration(scope: OscilloscopeSpec) -> dict[str, str] | None:
    """Return where the records of its signals come from, the oldest day, and the first one to expire."""
    used = {key for signal in scope.signals.values() for key in signal.calibrated_by}
    records = [record for key, record in scope.calibration.records.items() if key in used]
    if not records:
        return None
    return {
        "certificate": "; ".join(dict.fromkeys(record.source for record in records)),
        "date": min(record.made for record in records).isoformat(),
        "due": min(record.expires for record in records).isoformat(),
    }


def _limits(scope: OscilloscopeSpec) -> dict[str, Any]:
    limits = scope.limits
    if limits is None:
        return {}
    return {
        "time_base_error_ppm": _plain(limits.time_base_error * 1e6),
        "clock_jitter_ps": _plain(limits.clock_jitter_s * 1e12),
        "trigger_jitter_ps": _plain(limits.trigger_jitter_s * 1e12),
        "skew_ps": _plain(limits.skew_s * 1e12),
    }


def _plain(value: float) -> float:
    """Return a number as the bench file has it, without what multiplying has put behind it."""
    return float(f"{value:.9g}")


def _card_limits(card: TimecardSpec) -> dict[str, Any]:
    return {"bound_ns": card.bound_ns} if card.bound_ns else {}
