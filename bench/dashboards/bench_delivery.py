# SPDX-License-Identifier: Apache-2.0
"""Is anything lost or doubled when 100,000 points go to a real InfluxDB in a storm of kills?

    make bench-delivery                    InfluxDB 1.6.7, as Debian has it
    make bench-delivery-influxdb2          InfluxDB 2.7, built where it is not there

The server is killed 50 times and the deliverer 20 times, at random places of the delivery's progress; 1,000
malformed rows lie among the points. Everything is counted by query, three times: when delivery has ended,
after one further kill of the server (what it had acknowledged and lost is its own defect, docs/store.md), and
after one further delivery. How long the same points take without kills is timed besides.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from bench.lab.report import Bar, publish
from hw.scratch import scratch_folder
from tests.dashboards.chaos import Storm, run_storm
from tests.dashboards.influxd import InfluxServer

BARS = {
    "lost": Bar(0),
    "lost_in_the_end": Bar(0),
    "doubled": Bar(0),
    "wrongly_rejected": Bar(0),
    "wrongly_delivered": Bar(0),
}
CALM_LINES = 5000


def main(
    name: str = "delivery",
    make_server: Callable[[Path], InfluxServer] = InfluxServer,
    arguments: Sequence[str] | None = None,
) -> int:
    """Run the benchmark with a kind of server and publish it under a name."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--points", type=int, default=100_000)
    parser.add_argument("--malformed", type=int, default=1000)
    parser.add_argument("--server-kills", type=int, default=50)
    parser.add_argument("--deliverer-kills", type=int, default=20)
    parser.add_argument("--lines", type=int, default=1000, help="points a request (default 1000)")
    parser.add_argument("--seed", type=int, default=5)
    options = parser.parse_args(arguments)
    storm = Storm(**vars(options))
    calm = Storm(options.points, 0, 0, 0, CALM_LINES)
    outcomes: dict[str, dict[str, float]] = {}
    for kind, one in (("calm", calm), ("storm", storm)):
        with scratch_folder() as folder:
            outcomes[kind] = asdict(run_storm(one, Path(folder), make_server))
        print(f"bench     {kind}: {outcomes[kind]}", file=sys.stderr, flush=True)
    figures: dict[str, float] = {name: float(value) for name, value in outcomes["storm"].items()}
    figures["calm_points_per_s"] = options.points / outcomes["calm"]["wall_s"]
    return publish(name, figures, BARS, {"storm": asdict(storm), "outcomes": outcomes})


if __name__ == "__main__":
    sys.exit(main())
