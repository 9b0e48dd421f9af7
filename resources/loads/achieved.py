# SPDX-License-Identifier: Apache-2.0
"""What a load has achieved, over which time, and who counted it.

What nobody could count is None, and says why.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from resources.loads.counters import Counters

SCHEMA = "benchwright.load/1"
FILE = "load.json"
IN_MEMORY = ("tmpfs", "ramfs", "overlay")
"""File systems whose files may never be on a disk of the node; what an overlay writes lies somewhere else."""
NO_COUNTERS = "it has no /proc"


@dataclass(frozen=True)
class Quantity:
    """A figure.

    Attributes:
        value: None: it is not known.
        source: Who counted it, such as `/proc/stat of linux-rt`; of None: why nobody did.
    """

    value: float | None
    source: str


@dataclass(frozen=True)
class Achieved:
    """What became of a load.

    Attributes:
        load: As it was asked for: kind, node, duration_s, parameters.
        over_s: Time between both readings, by the node's own clock where it has one.
        ended: `asked`, or `by itself` after its longest duration.
        cpu_s: CPU time, in s.
        written_bytes: Bytes written, to a disk or to files: the source says which.
        sent_bit_s: Sent, in bit/s; likewise `received_bit_s`.
        forks: Processes and threads that were made.
    """

    load: Mapping[str, Any]
    over_s: float
    ended: str
    cpu_s: Quantity
    written_bytes: Quantity
    sent_bit_s: Quantity
    received_bit_s: Quantity
    forks: Quantity
    context_switches: Quantity

    def write(self, folder: Path) -> None:
        """Write it to `load.json` of a folder."""
        text = json.dumps({"schema": SCHEMA, **asdict(self)}, indent=2, allow_nan=False)
        (folder / FILE).write_text(text + "\n")


def counted(
    before: Counters, after: Counters, node: str, over_s: float, folder: str = ""
) -> dict[str, Quantity]:
    """Return all quantities by a node's counters.

    Args:
        before: Of the node, before the load.
        after: Likewise, after it.
        node: Its name.
        over_s: Time between both.
        folder: Where the load writes; empty: it does not.
    """
    grown = {
        "cpu_s": _grown(before.cpu_s, after.cpu_s, "/proc/stat", node),
        "written_bytes": _written(before, after, node, folder),
        "sent_bit_s": _rate(_grown(before.sent_bytes, after.sent_bytes, "/proc/net/dev", node), over_s),
        "received_bit_s": _rate(
            _grown(before.received_bytes, after.received_bytes, "/proc/net/dev", node), over_s
        ),
        "forks": _grown(before.forks, after.forks, "/proc/stat", node),
        "context_switches": _grown(before.context_switches, after.context_switches, "/proc/stat", node),
    }
    return (
        grown
        if before.known and after.known
        else dict.fromkeys(grown, Quantity(None, f"{node}: {NO_COUNTERS}"))
    )


def _grown(before: float | None, after: float | None, file: str, node: str) -> Quantity:
    source = f"{file} of {node}"
    if before is None or after is None:
        return Quantity(None, f"{source} does not say")
    if after < before:
        return Quantity(None, f"{source} went back: it was started anew, or its counter began again")
    return Quantity(round(after - before, 2), source)


def _rate(grown_bytes: Quantity, over_s: float) -> Quantity:
    if grown_bytes.value is None or over_s <= 0:
        return Quantity(None, grown_bytes.source)
    return Quantity(round(grown_bytes.value * 8 / over_s), grown_bytes.source)


def _written(before: Counters, after: Counters, node: str, folder: str) -> Quantity:
    on = after.file_system(folder) if folder else ""
    if on in IN_MEMORY:
        return Quantity(None, f"{folder} of {node} is on {on}, which /proc/diskstats does not see")
    if before.disk_bytes is None or after.disk_bytes is None:
        return Quantity(None, f"/proc/diskstats of {node} has no disk")
    return _grown(before.disk_bytes, after.disk_bytes, "/proc/diskstats", node)
