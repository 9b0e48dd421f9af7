# SPDX-License-Identifier: Apache-2.0
"""Variables and macros in a query, replaced as Grafana's InfluxDB plug-in does it for InfluxQL.

After its `influx_query_model.ts`, `datasource.ts` and `pkg/tsdb/influxdb/models/query.go` (Grafana 11 and 12)
and `rangeutil.roundInterval`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

NS_PER_MS = 1_000_000
_SPECIAL = re.compile(r"[\\^$*+?.()|\[\]{}/]")
_VARIABLE = re.compile(r"\$(\w+)|\[\[(\w+)\]\]|\$\{(\w+)\}")
_S, _MINUTE, _HOUR, _DAY = 1000, 60_000, 3_600_000, 86_400_000
_ROUNDED = (
    (90 * _S, _MINUTE),
    (210 * _S, 2 * _MINUTE),
    (450 * _S, 5 * _MINUTE),
    (750 * _S, 10 * _MINUTE),
    (1050 * _S, 15 * _MINUTE),
    (1500 * _S, 20 * _MINUTE),
    (2700 * _S, 30 * _MINUTE),
    (5400 * _S, _HOUR),
    (9000 * _S, 2 * _HOUR),
    (16_200 * _S, 3 * _HOUR),
    (32_400 * _S, 6 * _HOUR),
    (_DAY, 12 * _HOUR),
    (7 * _DAY, _DAY),
    (21 * _DAY, 7 * _DAY),
    (42 * _DAY, 30 * _DAY),
)
_UNITS = (("d", _DAY), ("h", _HOUR), ("m", _MINUTE), ("s", _S))


@dataclass(frozen=True)
class Value:
    """What is chosen of a variable.

    Attributes:
        values: The values; None: all of them.
        several: Whether the variable takes several.
        all_value: What stands for all of them, as it is.
    """

    values: tuple[str, ...] | None
    several: bool = True
    all_value: str = ".*"

    def text(self) -> str:
        """Return what the query gets."""
        if self.values is None:
            return self.all_value
        if not self.several:
            return self.values[0]
        return f"({'|'.join(_SPECIAL.sub(lambda found: chr(92) + found[0], value) for value in self.values)})"


@dataclass(frozen=True)
class Span:
    """A dashboard's time, in ns since 1970 UTC."""

    begin_ns: int
    end_ns: int

    def filter(self) -> str:
        """Return the condition that `$timeFilter` stands for."""
        return f"time >= {self.begin_ns // NS_PER_MS}ms and time <= {self.end_ns // NS_PER_MS}ms"

    def interval_ms(self, points_max: int, least: str) -> int:
        """Return what `$__interval` stands for, in ms."""
        wanted_ms = (self.end_ns - self.begin_ns) / NS_PER_MS / points_max
        rounded = next((length for below, length in _ROUNDED if wanted_ms < below), 365 * _DAY)
        return max(rounded, duration_ms(least) if least else 1)


def duration_ms(text: str) -> int:
    """Return a duration such as `1h` in ms."""
    return int(text[:-1]) * dict(_UNITS)[text[-1]]


def interpolate(
    query: str, span: Span, variables: Mapping[str, Value], *, points_max: int = 1000, least: str = ""
) -> str:
    """Return a query as the server gets it.

    Args:
        query: InfluxQL with variables.
        span: The dashboard's time.
        variables: What is chosen, by name.
        points_max: Of a panel; decides the interval.
        least: Least interval of a panel.

    Raises:
        ValueError: A variable is not known.
    """
    interval_ms = span.interval_ms(points_max, least)
    unit, length = next((unit, length) for unit, length in _UNITS if interval_ms % length == 0)
    known = {
        "timeFilter": span.filter(),
        "__interval": f"{interval_ms // length}{unit}",
        "__interval_ms": str(interval_ms),
        "__from": str(span.begin_ns // NS_PER_MS),
        "__to": str(span.end_ns // NS_PER_MS),
        **{name: value.text() for name, value in variables.items()},
    }

    def replace(found: re.Match[str]) -> str:
        name = found[1] or found[2] or found[3]
        if name not in known:
            raise ValueError(f"{found[0]}: no such variable, in {query}")
        return known[name]

    return _VARIABLE.sub(replace, query)
