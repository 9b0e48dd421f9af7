# SPDX-License-Identifier: Apache-2.0
"""`bench_panels` against a real InfluxDB 2.7, built first where it is not there (minutes, once)."""

from __future__ import annotations

import sys

from bench.dashboards import bench_panels
from tests.dashboards.influxd2 import InfluxServer2, build

if __name__ == "__main__":
    sys.exit(build() or bench_panels.main("panels_influxdb2", InfluxServer2))
