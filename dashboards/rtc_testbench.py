# SPDX-License-Identifier: Apache-2.0
"""Statistics of RTC-Testbench (Linutronix) as points: its JSON messages, unchanged, one behind the other.

    {"testbench": {"Timestamp": 1795000000000000000, "MeasurementName": "bench1",
                   "stats": {"TCName": "TsnHigh", "FramesSent": 1000, "OnewayMax": 120, …}}}

Until 2025 its messages began with `reference` in place of `testbench`. Its sources `src/stat.c`,
`src/log_mqtt.c` and `src/log_json.c` say what they mean; times are µs, a smallest
value of 2^64 - 1 says that there is none. Its MQTT logger sends the figures of one period each, with the time
of the last frame (in the application's clock, CLOCK_TAI as a rule); its JSON/UDP logger sends the figures
since the start each time, and 0 for the time. So messages with a time are combined, of those without the last
one counts and the caller says when the run began. Either way a traffic class gives one point a figure.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from dashboards.line_protocol import Field, Point, tag_text
from dashboards.points import LATENCY, RunPoints
from hw.errors import ConfigError
from reports.clock_sync.tai_utc import TAI_UTC_S
from reports.record.json_text import load_json_at
from reports.units import NS_PER_S, NS_PER_US

SOURCE = "rtc-testbench"
NO_MINIMUM = (1 << 64) - 1
_FIGURES = {
    "RoundTrip": ("round_trip_time", ("RoundTripMin", "RoundTripTimeMin")),
    "Oneway": ("one_way_latency", ("OnewayMin",)),
}
"""Prefix of Max, Av and Outliers; our quantity; names that the minimum has had."""
_ERRORS = {
    "OutofOrderErrors": "out_of_order",
    "FrameIdErrors": "frame_id_errors",
    "PayloadErrors": "payload_errors",
}
_KEYS = ("testbench", "reference")
_EARLIEST_NS = 946_684_800 * NS_PER_S  # 2000-01-01: an earlier time is of a clock that counts from a boot


@dataclass(frozen=True)
class _Message:
    time_ns: int
    bench: str
    traffic_class: str
    stats: dict[str, Any]


def import_statistics(path: Path, branch: str, *, start_ns: int | None = None, tai: bool = True) -> RunPoints:
    """Return the points of a file of statistics.

    Args:
        path: The file: messages one behind the other, with or without line breaks.
        branch: Class of the branch.
        start_ns: Start of the run, ns since 1970 UTC; needed where the messages have no time.
        tai: Whether their times are TAI; else UTC.

    Raises:
        ConfigError: The file is no such statistics, or its time is not known; names the message.
    """
    messages = _read(path)
    benches = sorted({message.bench for message in messages})
    if len(benches) != 1:
        raise ConfigError(f"{path}: messages of {', '.join(benches)}; one file a testbench")
    times = [message.time_ns for message in messages if message.time_ns]
    if times and min(times) < _EARLIEST_NS:
        raise ConfigError(f"{path}: testbench.Timestamp: {min(times)} ns is a time since a boot, not a date")
    if start_ns is None:
        if not times:
            raise ConfigError(f"{path}: its messages have no time (the JSON/UDP logger sends 0): say --time")
        start_ns = min(times) - (TAI_UTC_S * NS_PER_S if tai else 0)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    common: dict[str, Field] = {"run_id": f"{SOURCE}-{digest}"}
    points: list[Point] = []
    for name in sorted({message.traffic_class for message in messages}):
        stats = _combine([message for message in messages if message.traffic_class == name])
        tags = {
            "bench": benches[0],
            "target": SOURCE,
            "stream": name,
            "profile": "imported",
            "branch": branch,
        }
        found = _points_of(stats, {key: tag_text(text) for key, text in tags.items()}, common, start_ns)
        if not found:
            known = ", ".join(
                f"{prefix}Max with {' or '.join(minima)}" for prefix, (_, minima) in _FIGURES.items()
            )
            raise ConfigError(f"{path}: class {name!r}: none of its figures is known; known are {known}")
        points += found
    return RunPoints(
        run_id=f"{SOURCE}-{digest}",
        time_ns=start_ns,
        bench=benches[0],
        profile="imported",
        branch=branch,
        commit=None,
        simulated=False,
        outcome="unset",
        points=tuple(points),
        source=SOURCE,
    )


def is_statistics(path: Path) -> bool:
    """Say whether a file looks like such statistics."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            text = file.read(200)
            return any(f'"{key}"' in text for key in _KEYS)
    except OSError:
        return False


def _read(path: Path) -> list[_Message]:
    try:
        text = path.read_text(encoding="utf-8-sig").strip()
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    found: list[_Message] = []
    place = 0
    while place < len(text):
        where = f"{path}: message {len(found) + 1}"
        try:
            data, place = load_json_at(text, place)
        except ValueError as error:
            raise ConfigError(f"{where}: {error}") from error
        found.append(_message(data, where))
        while place < len(text) and text[place].isspace():
            place += 1
    if not found:
        raise ConfigError(f"{path}: no message")
    return found


def _message(data: object, where: str) -> _Message:
    message = _object(data, where)
    key = next((each for each in _KEYS if each in message), _KEYS[0])
    body = _object(message.get(key), f"{where}: {key}")
    stats = _object(body.get("stats"), f"{where}: {key}.stats")
    name, bench, time_ns = stats.get("TCName"), body.get("MeasurementName"), body.get("Timestamp")
    if not isinstance(name, str) or not isinstance(bench, str) or not name or not bench:
        raise ConfigError(f"{where}: MeasurementName and TCName must be texts")
    if not isinstance(time_ns, int) or time_ns < 0:
        raise ConfigError(f"{where}: {key}.Timestamp: {time_ns!r} is no number of ns")
    for key, value in stats.items():
        if key != "TCName" and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise ConfigError(f"{where}: stats.{key}: {value!r} is no number")
    return _Message(time_ns, bench, name, stats)


def _object(data: object, where: str) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise ConfigError(f"{where}: need an object")
    return cast("dict[str, Any]", data)


def _combine(messages: Iterable[_Message]) -> dict[str, float]:
    """Return the figures of a traffic class over the whole run, by the names that they have in a message."""
    every = list(messages)
    periods = [message for message in every if message.time_ns]
    if not periods:
        return dict(every[-1].stats)
    combined: dict[str, float] = {}
    weights: dict[str, float] = {}
    for message in periods:
        frames = float(message.stats.get("FramesReceived", 0))
        for name, value in message.stats.items():
            if name == "TCName":
                continue
            known = combined.get(name)
            if name.endswith("Min"):
                combined[name] = value if known is None else min(known, value)
            elif name.endswith("Max"):
                combined[name] = value if known is None else max(known, value)
            elif name.endswith("Av"):
                weights[name] = weights.get(name, 0.0) + frames
                share = frames / weights[name] if weights[name] else 0.0
                combined[name] = (known or 0.0) + ((value - (known or 0.0)) * share)
            else:
                combined[name] = value + (known or 0)
    return combined


def _points_of(
    stats: dict[str, float], tags: dict[str, str], common: dict[str, Field], time_ns: int
) -> list[Point]:
    points: list[Point] = []
    for prefix, (quantity, minima) in _FIGURES.items():
        smallest = next((stats[name] for name in minima if name in stats), None)
        if f"{prefix}Max" not in stats or smallest == NO_MINIMUM:
            continue  # not measured here: a mirror knows no round trip
        fields: dict[str, Field] = {
            **common,
            "n": _count(stats, "FramesReceived"),
            "sent": _count(stats, "FramesSent"),
            "value_ns": float(stats[f"{prefix}Max"] * NS_PER_US),
            "outliers": _count(stats, f"{prefix}Outliers"),
            **{ours: _count(stats, theirs) for theirs, ours in _ERRORS.items()},
        }
        if smallest is not None:
            fields["min_ns"] = float(smallest * NS_PER_US)
        if f"{prefix}Av" in stats:
            fields["mean_ns"] = float(stats[f"{prefix}Av"] * NS_PER_US)
        points.append(Point(LATENCY, {**tags, "quantity": quantity, "statistic": "max"}, fields, time_ns))
    return points


def _count(stats: dict[str, float], name: str) -> int:
    value = stats.get(name, 0)
    if not math.isfinite(value):
        raise ConfigError(f"{name}: the sum over all messages is beyond any number")
    return int(value)
