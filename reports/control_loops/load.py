# SPDX-License-Identifier: Apache-2.0
"""A load meanwhile: what it was asked for, and what it achieved by its `load.json` (docs/loads.md)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reports.errors import RecordError
from reports.record.json_text import load_json
from reports.units import format_value

SCHEMA = "benchwright.load/1"
LOAD_FILE = "load.json"


@dataclass(frozen=True)
class KnownLoad:
    """A load, as `ring.json` and `camera.json` name it; what it achieved is in `load.json` beside them.

    Attributes:
        kind: `compile-like`, `network`, ….
        node: Which was loaded.
    """

    kind: str
    node: str


@dataclass(frozen=True, slots=True)
class AchievedLoad:
    """What a load came to.

    Attributes:
        over_s: Over which time.
        cpu_s: CPU time of its node in s; None: nobody could count it.
        written_bytes: Likewise, bytes written.
        received_bit_s: Likewise, bit/s that its node received.
        forks: Likewise, processes that were made.
    """

    kind: str
    node: str
    over_s: float
    cpu_s: float | None
    written_bytes: float | None
    received_bit_s: float | None
    forks: float | None

    @property
    def words(self) -> str:
        """Return its amounts in words."""
        said: list[str] = []
        if self.kind == "network" and self.received_bit_s is not None:
            said.append(f"{format_value(self.received_bit_s / 1e6, '')} Mbit/s")
        if self.cpu_s is not None:
            said.append(f"{format_value(self.cpu_s / self.over_s, '')} s of CPU time a second")
        if self.kind != "network" and self.forks is not None:
            said.append(f"{format_value(self.forks / self.over_s, '')} processes a second")
        if self.kind != "network" and self.written_bytes is not None:
            said.append(f"{format_value(self.written_bytes / self.over_s / 1e6, '')} MB/s written")
        return ", ".join(said) or "nobody could count what it did"

    @property
    def numbers(self) -> dict[str, int]:
        """Return what it achieved as conditions of a measurement."""
        found: dict[str, int] = {}
        if self.cpu_s is not None:
            found["load_cpu_ms_s"] = round(1000 * self.cpu_s / self.over_s)
        if self.kind == "network" and self.received_bit_s is not None:
            found["load_received_bit_s"] = round(self.received_bit_s)
        return found

    @property
    def did_something(self) -> bool:
        """Tell whether something of its own kind was counted; what nobody could count speaks not against."""
        own = (self.received_bit_s,) if self.kind == "network" else (self.forks, self.cpu_s)
        known = [each for each in own if each is not None]
        return not known or max(known) > 0


def read_load(folder: Path, known: KnownLoad) -> AchievedLoad:
    """Read what a load achieved; raises RecordError: the file is of another one, or lacks something."""
    try:
        text = (folder / LOAD_FILE).read_text("utf-8")
        document: dict[str, Any] = load_json(text)  # type: ignore[assignment]
        if document["schema"] != SCHEMA:
            raise RecordError(f"{LOAD_FILE}: schema is {document['schema']!r}; needed: {SCHEMA!r}")
        asked = document["load"]
        if (asked["kind"], asked["node"]) != (known.kind, known.node):
            raise RecordError(f"{LOAD_FILE}: is of another load, {asked['kind']} on {asked['node']}")
        over_s = float(document["over_s"])
        values = {
            name: None if (value := document[name]["value"]) is None else float(value)
            for name in ("cpu_s", "written_bytes", "received_bit_s", "forks")
        }
    except RecordError:
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordError(f"{LOAD_FILE}: {type(error).__name__}: {error}") from error
    if not over_s > 0:
        raise RecordError(f"{LOAD_FILE}: over_s: {over_s}; needed: more than 0")
    return AchievedLoad(known.kind, known.node, over_s, **values)
