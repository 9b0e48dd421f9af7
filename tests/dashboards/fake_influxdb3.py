# SPDX-License-Identifier: Apache-2.0
"""An InfluxDB 3 as far as its documentation says what it answers; no registry has the program itself.

- InfluxDB 3 Core, "Use the v3 write_lp API to write data": parameters and their defaults, the two bodies of
  400 (partial write accepted: a list of refused lines; not accepted: one object), `Authorization: Bearer`.
- "Troubleshoot issues writing data": 204, 400 with at most 100 refused lines, 401, 404, 500, 503.
- influxdata/influxdb, influxdb3_server/src/http/v1.rs: /query, `db`, `q`, `epoch`. Series have `tags` with
  `GROUP BY` since issue 25751; before, tags were columns.
- influxdata/influxdb issue 26785: a query that would read more than 432 files fails with these words.
"""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

from tests.dashboards.fake_server import body_of, send_answer

ERRORS_MAX = 100
_Key = tuple[str, frozenset[tuple[str, str]], int]


@dataclass
class FakeInflux3:
    """The behaviour of a server with one database; a line is parsed as far as the tests' own lines need it.

    Attributes:
        token: That it wants.
        tags_as_columns: It is an early release.
        file_limit: It answers no query: too many files.
        points: What it has, by measurement, tags and time.
    """

    token: str
    tags_as_columns: bool = False
    file_limit: bool = False
    points: dict[_Key, str] = field(default_factory=dict[_Key, str])
    _types: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])

    def __call__(self, connection: socket.socket, request: bytes) -> None:
        """Answer one request."""
        head = request.partition(b"\r\n\r\n")[0].decode()
        method, target, _ = head.split("\r\n")[0].split(" ")
        url = urlsplit(target)
        given = {name: values[0] for name, values in parse_qs(url.query).items()}
        if f"\r\nAuthorization: Bearer {self.token}\r\n" not in f"{head}\r\n":
            send_answer(connection, 401, '{"error": "the request was not authenticated"}')
        elif (method, url.path) == ("POST", "/api/v3/write_lp"):
            self._write(connection, given, body_of(request))
        elif (method, url.path) == ("GET", "/query"):
            self._query(connection, given)
        else:
            send_answer(connection, 404, "not found")

    def _write(self, connection: socket.socket, given: dict[str, str], lines: list[str]) -> None:
        assert given["db"]
        assert given["precision"] in ("auto", "nanosecond", "microsecond", "millisecond", "second")
        assert given.get("no_sync", "false") == "false"
        refused = [
            {"original_line": line, "line_number": number, "error_message": why}
            for number, line in enumerate(lines, 1)
            if (why := self._take(line, store=given.get("accept_partial", "true") == "true"))
        ]
        if not refused:
            for line in lines:
                self._take(line, store=True)
            send_answer(connection, 204)
        elif given.get("accept_partial", "true") == "true":
            words = {"error": "partial write of line protocol occurred", "data": refused[:ERRORS_MAX]}
            send_answer(connection, 400, json.dumps(words))
        else:
            words = {"error": "parsing failed for write_lp endpoint", "data": refused[0]}
            send_answer(connection, 400, json.dumps(words))

    def _take(self, line: str, *, store: bool) -> str:
        """Return why a line is refused; empty: it is not."""
        parts = line.split(" ")
        if len(parts) != 3:
            return "No fields were provided"
        head, fields, time_text = parts
        measurement, *tags = head.split(",")
        for name, _, text in (one.partition("=") for one in fields.split(",")):
            kind = {'"': "string", "i": "integer"}.get(text[-1], "boolean" if text in "tf" else "float")
            known = self._types.setdefault((measurement, name), kind)
            if known != kind:
                return (
                    f"invalid column type for column '{name}', expected iox::column_type::field::{known},"
                    f" got iox::column_type::field::{kind}"
                )
        if store:
            pairs = frozenset((name, text) for name, _, text in (one.partition("=") for one in tags))
            self.points[measurement, pairs, int(time_text)] = fields
        return ""

    def _query(self, connection: socket.socket, given: dict[str, str]) -> None:
        if self.file_limit:
            words = "query error: External error: Query would exceed file limit of 432 parquet files."
            send_answer(connection, 500, words)
            return
        assert given["epoch"] == "ns"
        measurement = given["q"].split('FROM "')[1].split('"')[0]
        mine = [(dict(tags), time_ns) for name, tags, time_ns in self.points if name == measurement]
        names = sorted({name for tags, _ in mine for name in tags})
        if self.tags_as_columns:
            columns = ["time", *names, "run_id"]
            values = [[time_ns, *(tags.get(name) for name in names), "x"] for tags, time_ns in mine]
            series = [{"name": measurement, "columns": columns, "values": values}] if mine else []
        else:
            series = [
                {
                    "name": measurement,
                    "tags": {name: tags.get(name, "") for name in names},
                    "columns": ["time", "run_id"],
                    "values": [[time_ns, "x"]],
                }
                for tags, time_ns in mine
            ]
        send_answer(connection, 200, json.dumps({"results": [{"statement_id": 0, "series": series}]}))
