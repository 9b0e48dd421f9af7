# SPDX-License-Identifier: Apache-2.0
"""`bench_delivery` against a real InfluxDB 2.7, built first where it is not there (minutes, once)."""

from __future__ import annotations

import subprocess
import sys

from tests.bench import bench_delivery
from tests.bench.report import REPOSITORY
from tests.dashboards.influxd2 import InfluxServer2

BUILD = REPOSITORY / "tests" / "influxdb2" / "build" / "build.sh"


def main() -> int:
    """Run the benchmark; where the server cannot be built, return the build's exit code."""
    built = subprocess.run([str(BUILD)], check=False, stdout=sys.stderr)
    return built.returncode or bench_delivery.main("delivery_influxdb2", InfluxServer2)


if __name__ == "__main__":
    sys.exit(main())
