# SPDX-License-Identifier: Apache-2.0
"""What the folder of an experiment says of its points: values, schedule, conditions (docs/experiments.md)."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from reports.errors import RecordError

NS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class Span:
    """A component's task of a phase.

    Attributes:
        component: Its name; empty: of the controller.
        begin_s: Since the point began.
        end_s: Likewise; None: it has no end, the controller was killed.
        failed: Why it failed; empty: it did not.
    """

    phase: str
    component: str
    begin_s: float
    end_s: float | None
    failed: str


@dataclass(frozen=True)
class Condition:
    """What a component that is no program was asked for, and what it achieved."""

    component: str
    asked: str
    achieved: str


@dataclass(frozen=True)
class PointLeft:
    """A point that was measured, or was begun.

    Attributes:
        name: Of its folder.
        is_complete: It came to its end.
        values: Of its axes.
        spans: In the order in which they began.
        conditions: Of its loads and paths.
    """

    name: str
    is_complete: bool
    repeat: int
    values: Mapping[str, Any]
    spans: tuple[Span, ...]
    conditions: tuple[Condition, ...]

    @property
    def duration_s(self) -> float:
        """Return how long it took, as far as its schedule says."""
        return max((span.end_s or span.begin_s for span in self.spans), default=0.0)


@dataclass(frozen=True)
class ExperimentLeft:
    """An experiment that has begun."""

    name: str
    bench: str
    plan: str
    versions: Mapping[str, str]
    planned: int
    points: tuple[PointLeft, ...]


def read_experiment_folder(folder: Path) -> ExperimentLeft:
    """Read the folder of an experiment.

    Raises:
        RecordError: It is none, or a file of it is damaged; names the file.
    """
    try:
        table = tomllib.loads((folder / "experiment.toml").read_text(encoding="utf-8"))
        plan = (folder / "plan.txt").read_text(encoding="utf-8")
        versions = folder / "versions.json"
        points = [each for each in (folder / "points").iterdir() if (each / "point.json").is_file()]
        return ExperimentLeft(
            str(table["name"]),
            str(table["bench"]),
            plan,
            json.loads(versions.read_text()) if versions.exists() else {},
            int(plan.split(": ", 1)[1].split(" ", 1)[0]),
            tuple(_point(each) for each in sorted(points, key=lambda each: each.name)),
        )
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise RecordError(f"{folder}: not the folder of an experiment: {error}") from error


def _point(folder: Path) -> PointLeft:
    point: dict[str, Any] = json.loads((folder / "point.json").read_text())
    return PointLeft(
        folder.name,
        folder.name.isdecimal(),
        int(point["repeat"]),
        point["values"],
        _spans(folder),
        _conditions(folder),
    )


def _spans(folder: Path) -> tuple[Span, ...]:
    path = folder / "schedule.ndjson"
    lines: list[dict[str, Any]] = []
    for text in path.read_text().splitlines() if path.exists() else []:
        try:
            lines.append(json.loads(text))
        except ValueError:
            continue  # torn: the controller was killed, or its disk was full
    begins: dict[tuple[str, str], int] = {}
    ends: dict[tuple[str, str], tuple[int, str]] = {}
    for line in lines:
        key = str(line["phase"]), str(line.get("component", ""))
        if line["what"] == "begin":
            begins.setdefault(key, int(line["utc_ns"]))
        else:
            ends[key] = int(line["utc_ns"]), str(line.get("failed", ""))
    zero_ns = min(begins.values(), default=0)
    found: list[Span] = []
    for (phase, component), begin_ns in begins.items():
        end_ns, failed = ends.get((phase, component), (None, ""))
        end_s = None if end_ns is None else (end_ns - zero_ns) / NS_PER_S
        found.append(Span(phase, component, (begin_ns - zero_ns) / NS_PER_S, end_s, failed))
    return tuple(found)


def _conditions(folder: Path) -> tuple[Condition, ...]:
    found: list[Condition] = []
    for path in sorted(folder.glob("*/load.json")):
        load: dict[str, Any] = json.loads(path.read_text())
        found.append(Condition(path.parent.name, _words(load["load"]), _achieved(load)))
    for path in sorted(folder.glob("*.json")):
        said: Any = json.loads(path.read_text())
        if not isinstance(said, dict):
            continue
        for change in cast("dict[str, Any]", said).get("changes", ()):
            realised = change["realised"]
            found.append(
                Condition(
                    path.stem,
                    f"from {change['at_s']:g} s: {_words(change['asked'])}",
                    f"{realised['node']}, {realised['interface']}: {_words(realised['settings'])}",
                )
            )
    return tuple(found)


def _words(table: Mapping[str, Any]) -> str:
    return (
        ", ".join(f"{key} {value}" for key, value in table.items() if value not in (None, 0, "", [], {}))
        or "nothing"
    )


def _achieved(load: Mapping[str, Any]) -> str:
    units = {
        "cpu_s": "s of CPU", "written_bytes": "bytes written", "sent_bit_s": "bit/s sent",
        "received_bit_s": "bit/s received", "forks": "forks", "context_switches": "context switches",
    }  # fmt: skip
    said = [
        f"{load[key]['value']:,.15g} {unit}" for key, unit in units.items() if load[key]["value"] is not None
    ]
    return f"{', '.join(said) or 'unknown'} in {load['over_s']:g} s"
