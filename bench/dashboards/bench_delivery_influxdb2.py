# SPDX-License-Identifier: Apache-2.0
"""`bench_delivery` against a real InfluxDB 2.7, built first where it is not there (minutes, once)."""

from __future__ import annotations

from bench.dashboards import bench_delivery
from tests.dashboards.influxd2 import built


def main() -> int:
    """Run the benchmark."""
    return bench_delivery.main("delivery_influxdb2", built)
