# SPDX-License-Identifier: Apache-2.0
"""`bench_panels` against a real InfluxDB 2.7, built first where it is not there (minutes, once)."""

from __future__ import annotations

from bench.dashboards import bench_panels
from tests.dashboards.influxd2 import built


def main() -> int:
    """Run the benchmark."""
    return bench_panels.main("panels_influxdb2", built)
