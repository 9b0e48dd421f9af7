# SPDX-License-Identifier: Apache-2.0
"""What cables and switches took of round trips, worked out again from the wiring that a run has kept.

docs/software-latency.md, h; docs/bench-files.md, `topology`: of a frame by itself, and of several in a row.
A virtual bench has no cables; what its switches add is in its bench file alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reports.rejudge.again import Record

FILE = "round_trips.json"
LINK = re.compile(
    r"(\S+) to (\S+): (\d+) Mbit/s, (\S+) m of (\S+) ns/m, transceivers (\d+) ns, ± (\S+) ns", re.ASCII
)
SWITCH = re.compile(r"(store-and-forward|cut-through), (\d+) ± (\d+) ns", re.ASCII)
ROUNDED_NS = 1
DIGITS = 1e-5
"""Relative: lengths are noted with six digits."""
UDP, IP, ETHERNET, PREAMBLE, GAP = 8, 20, 18, 8, 12
PART_MAX, FRAME_MIN = 1480, 64
"""Bytes of a datagram in one frame; of the shortest frame, without its preamble."""

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Cable:
    """A cable: its endpoints, ns of a byte, and ns from its one end to the other."""

    endpoints: tuple[str, str]
    byte_ns: float
    through_ns: float


@dataclass(frozen=True)
class Wiring:
    """Cables, and of each switch whether it stores a frame, and its latency in ns."""

    cables: tuple[Cable, ...]
    switches: Mapping[str, tuple[bool, int]]

    def way(self, start: str, end: str, came: Cable | None = None) -> list[Cable] | None:
        """Return the cables from one end to another; None: there is no way."""
        if start == end:
            return []
        for cable in self.cables:
            if start in cable.endpoints and cable is not came:
                rest = self.way(cable.endpoints[cable.endpoints[0] == start], end, cable)
                if rest is not None:
                    return [cable, *rest]
        return None


def hardware_discrepancies(run: Path, manifest: Json, records: Sequence[Record]) -> Iterator[str]:
    """Say where more or less was taken off than the wiring takes."""
    host: Json = manifest.get("host") or {}
    wiring = wiring_of(host.get("wiring") or {})
    paths = {each["path"] for record in records for each in record["evidence"]}
    for path in sorted(each for each in paths if Path(each).name == FILE and (run / each).is_file()):
        facts: Json = json.loads((run / path).read_text("utf-8"))
        nodes = {each["name"]: each["node"] for each in facts["devices"]}
        for each in facts["exchanges"]:
            where = f"{path}: {each['asker']} to {each['reflector']}: hardware_ns is {each['hardware_ns']}"
            if each.get("hardware_bounds") is None:
                if each["hardware_ns"]:
                    yield f"{where}, of a bench without a topology"
            elif manifest["simulated"] is False:
                ends = nodes[each["asker"]], nodes[each["reflector"]]
                found_ns = round_trip_ns(wiring, *ends, facts["size_bytes"])
                if found_ns is None:
                    yield f"{where}, and run.json has no wiring between {' and '.join(ends)}"
                elif abs(each["hardware_ns"] - found_ns) > ROUNDED_NS + DIGITS * found_ns:
                    yield f"{where}, the wiring takes {found_ns:.0f}"


def wiring_of(words: Mapping[str, str]) -> Wiring:
    """Read cables and switches from a manifest's words; others stand there, too."""
    cables: list[Cable] = []
    switches: dict[str, tuple[bool, int]] = {}
    for name, text in words.items():
        what, _, own = name.partition(" ")
        if what == "link" and (found := LINK.fullmatch(text)):
            through_ns = float(found[4]) * float(found[5]) + int(found[6])
            cables.append(Cable((found[1], found[2]), 8_000 / int(found[3]), through_ns))
        elif what == "switch" and (found := SWITCH.fullmatch(text)):
            switches[own] = (found[1] == "store-and-forward", int(found[2]))
    return Wiring(tuple(cables), switches)


def round_trip_ns(wiring: Wiring, one: str, other: str, payload_bytes: int) -> float | None:
    """Return what a datagram takes there and back; None: the wiring has no way."""
    there, back = wiring.way(one, other), wiring.way(other, one)
    if not there or not back:
        return None
    return _one_way_ns(wiring, there, one, payload_bytes) + _one_way_ns(wiring, back, other, payload_bytes)


def _one_way_ns(wiring: Wiring, way: Sequence[Cable], start: str, payload_bytes: int) -> float:
    """Return when the last bit of the last frame is there."""
    whole = UDP + payload_bytes
    parts = [min(PART_MAX, whole - begin) for begin in range(0, whole, PART_MAX)]
    sizes = [PREAMBLE + max(FRAME_MIN, ETHERNET + IP + part) for part in parts]
    arrived: list[tuple[float, float]] = [(0.0, 0.0)] * len(sizes)
    at, before = start, None
    for cable in way:
        free_ns, sent = 0.0, arrived
        arrived = []
        for size, (first_ns, last_ns) in zip(sizes, sent, strict=True):
            begin_ns = first_ns
            if before is not None:
                stores, latency_ns = wiring.switches[at]
                is_whole = stores or cable.byte_ns < before.byte_ns
                begin_ns = (last_ns if is_whole else first_ns) + latency_ns
            begin_ns = max(begin_ns, free_ns)
            free_ns = begin_ns + (size + GAP) * cable.byte_ns
            arrived.append((begin_ns + cable.through_ns, begin_ns + size * cable.byte_ns + cable.through_ns))
        at, before = cable.endpoints[cable.endpoints[0] == at], cable
    return arrived[-1][1]
