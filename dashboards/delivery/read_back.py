# SPDX-License-Identifier: Apache-2.0
"""Asking the server what it has: an acknowledgement alone is not proof.

InfluxDB 1.6.7 and 2.7.12 can lose what they have acknowledged. When a kill tears the last entry of the
write-ahead log, the server cuts that entry off at the next start but goes on writing behind the gap; at the
start after that it takes the log for corrupt from the gap on, and everything that was acknowledged in between
is gone. So each delivery ends with a look at what the server still has of the last weeks, and what is missing
is sent once more.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from typing import Any, cast

from dashboards.delivery.endpoint import Endpoint
from dashboards.delivery.http import ask, reason_of
from dashboards.store.store import PointReceipt

_OK, _FAULT = 200, 500
_FIELD = "run_id"
"""Every point has it."""
_Key = tuple[str, frozenset[tuple[str, str]], int]


class NotReadableError(Exception):
    """Say that the server cannot be asked: what was delivered stays unproven."""


class ServerFaultError(Exception):
    """Say that the server cannot answer now.

    Attributes:
        busy: Not because of the question.
        retry_after_s: How long it asks to be left alone; 0: it does not.
    """

    def __init__(self, message: str, *, busy: bool, retry_after_s: float) -> None:
        super().__init__(message)
        self.busy = busy
        self.retry_after_s = retry_after_s


def missing(endpoint: Endpoint, points: Sequence[PointReceipt], deadline_s: float) -> list[PointReceipt]:
    """Return those of some points that the server does not have.

    Args:
        endpoint: The server.
        points: In order of time: all points that the server has between the first and the last are read.
        deadline_s: For each of the requests, one a measurement.

    Raises:
        NotReadableError: The server does not let itself be asked.
        ServerFaultError: It has a fault.
        NoAnswerError: It cannot be reached, or is too slow.
    """
    found: set[_Key] = set()
    for measurement in sorted({point.measurement for point in points}):
        times = [point.time_ns for point in points if point.measurement == measurement]
        where = f"time >= {min(times)} AND time <= {max(times)}"
        statement = f'SELECT {_FIELD} FROM "{measurement}" WHERE {where} GROUP BY *'  # noqa: S608 - own names
        found |= _points_there(endpoint, measurement, statement, deadline_s)
    return [p for p in points if (p.measurement, frozenset(p.tags.items()), p.time_ns) not in found]


def _points_there(endpoint: Endpoint, measurement: str, statement: str, deadline_s: float) -> set[_Key]:
    found = ask(endpoint, statement, deadline_s)
    status, text = found.status, found.body
    if status >= 500 or status in (408, 429):
        problem = f"{endpoint.name}: {status} {reason_of(endpoint, text)}"
        raise ServerFaultError(problem, busy=status != _FAULT, retry_after_s=found.retry_after_s)
    if status != _OK:
        raise NotReadableError(f"{endpoint.name}: {status} {reason_of(endpoint, text)}")
    try:
        result = cast("dict[str, Any]", json.loads(text)["results"][0])
        if "error" in result or result.get("partial"):
            raise NotReadableError(f"{endpoint.name}: {result.get('error', 'answers in parts')}")
        return {key for series in result.get("series", []) for key in _keys(measurement, series)}
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        raise NotReadableError(f"{endpoint.name}: its answer is no InfluxQL result: {error!r}") from error


def _keys(measurement: str, series: dict[str, Any]) -> Generator[_Key]:
    """Yield a series' points; early releases of 3.x have the tags of `GROUP BY *` among the columns."""
    common = cast("dict[str, Any]", series.get("tags") or {})
    for row in series["values"]:
        cells = dict(zip(series["columns"], row, strict=True))
        time_ns = int(cells.pop("time"))
        del cells[_FIELD]
        yield (
            measurement,
            frozenset((name, str(text)) for name, text in (common | cells).items() if text),
            time_ns,
        )
