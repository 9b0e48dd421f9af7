# SPDX-License-Identifier: Apache-2.0
"""An InfluxDB that holds the two years, set up as docs/grafana.md recommends."""

from __future__ import annotations

from pathlib import Path

from dashboards.delivery.http import post
from tests.dashboards.influxd import InfluxServer
from tests.dashboards.two_years import SHARDS, load_two_years

_WRITE_S = 120.0
_FAULTS_MAX = 5


def fill(server: InfluxServer, folder: Path, shards: str = SHARDS) -> int:
    """Put the two years into a server; return the number of points."""
    server.set_shards(shards)
    endpoint = server.endpoint()

    def write(body: bytes) -> None:
        answer = post(endpoint, body, _WRITE_S)
        for _ in range(_FAULTS_MAX):
            if (
                answer.status < 500
            ):  # a server without a processor for ten seconds says 500; points may go twice
                break
            answer = post(endpoint, body, _WRITE_S)
        assert answer.status == 204, answer

    return load_two_years(write, folder)
