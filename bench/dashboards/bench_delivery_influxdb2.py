# SPDX-License-Identifier: Apache-2.0
"""`bench_delivery` against a real InfluxDB 2.7, built first where it is not there (minutes, once)."""

from __future__ import annotations

import sys

from bench.dashboards import bench_delivery
from tests.dashboards.influxd2 import InfluxServer2, build

if __name__ == "__main__":
    sys.exit(build() or bench_delivery.main("delivery_influxdb2", InfluxServer2))
