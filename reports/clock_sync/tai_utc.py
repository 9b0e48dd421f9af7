# SPDX-License-Identifier: Apache-2.0
"""TAI - UTC as the kernels of a bench's nodes have it, and the one value that all of them have to use.

A kernel that was never told says 0; there the native tools use the value that they are given instead. Two
nodes that use different values are apart by whole seconds, however well their clocks are synchronised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reports.record.document import read_document, write_document

SCHEMA = "benchwright.tai_utc/1"
TAI_UTC = "tai-utc.json"
TAI_UTC_S = 37
"""What the native tools use where a kernel says 0; TAI - UTC since 2017-01-01 (IERS Bulletin C 52)."""


@dataclass(frozen=True)
class NodeTaiUtc:
    """TAI - UTC of one node in s; kernel_s is what adjtimex says, 0: never set."""

    node: str
    kernel_s: int

    @property
    def used_s(self) -> int:
        """Return what the native tools use on this node."""
        return self.kernel_s or TAI_UTC_S

    def text(self) -> str:
        """Return it in words."""
        return f"{self.node} {self.used_s} s" + ("" if self.kernel_s else " (its kernel does not know)")


@dataclass(frozen=True)
class TaiUtc:
    """What was read on all nodes of a measurement."""

    nodes: tuple[NodeTaiUtc, ...]
    schema: str = SCHEMA

    @property
    def agreed_s(self) -> int | None:
        """Return the value that all nodes use; None where they differ, or there are none."""
        used = {node.used_s for node in self.nodes}
        return used.pop() if len(used) == 1 else None

    def text(self) -> str:
        """Return in words what each node uses."""
        return ", ".join(node.text() for node in self.nodes)


def write_tai_utc(folder: Path, nodes: Sequence[NodeTaiUtc]) -> TaiUtc:
    """Write what was read to `tai-utc.json` in a folder of the evidence, and return it."""
    found = TaiUtc(tuple(nodes))
    write_document(folder / TAI_UTC, found)
    return found


def load_tai_utc(folder: Path) -> TaiUtc | None:
    """Read it again; None where the folder has none.

    Raises:
        RecordError: The file is damaged; names the key.
    """
    path = folder / TAI_UTC
    if not path.exists():
        return None
    return read_document(TaiUtc, path, SCHEMA)
