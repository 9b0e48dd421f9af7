# SPDX-License-Identifier: Apache-2.0
"""An InfluxDB 1.6.7 that holds the two years, set up as docs/grafana.md recommends."""

from __future__ import annotations

import urllib.parse
import urllib.request
from pathlib import Path

from tests.dashboards.influxd import DATABASE, InfluxServer
from tests.dashboards.two_years import SHARDS, load_two_years


def fill(server: InfluxServer, folder: Path, shards: str = SHARDS) -> int:
    """Put the two years into a server; return the number of points."""
    server.query(f"ALTER RETENTION POLICY autogen ON {DATABASE} SHARD DURATION {shards}", method="POST")
    query = urllib.parse.urlencode({"db": DATABASE, "precision": "ns"})

    def write(body: bytes) -> None:
        request = urllib.request.Request(f"http://127.0.0.1:{server.port}/write?{query}", data=body)
        with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310 - loopback
            assert answer.status == 204

    return load_two_years(write, folder)
