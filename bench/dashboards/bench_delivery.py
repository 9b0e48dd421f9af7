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

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from bench.lab.options import Options, takes
from bench.lab.report import Bar, publish, say
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


@takes(
    points=(100_000, ""),
    malformed=(1000, "rows"),
    server_kills=(50, ""),
    deliverer_kills=(20, ""),
    lines=(1000, "points a request"),
    seed=(5, ""),
)
def main(
    options: Options,
    name: str = "delivery",
    make_server: Callable[[Path], InfluxServer] = InfluxServer,
    arguments: Sequence[str] | None = None,
) -> int:
    """Run the benchmark with a kind of server and publish it under a name."""
    storm = Storm(**vars(options))
    calm = Storm(options.points, 0, 0, 0, CALM_LINES)
    outcomes: dict[str, dict[str, float]] = {}
    for kind, one in (("calm", calm), ("storm", storm)):
        with scratch_folder() as folder:
            outcomes[kind] = asdict(run_storm(one, Path(folder), make_server))
        say(f"{kind}: {outcomes[kind]}")
    figures: dict[str, float] = {name: float(value) for name, value in outcomes["storm"].items()}
    figures["calm_points_per_s"] = options.points / outcomes["calm"]["wall_s"]
    return publish(name, figures, BARS, {"storm": asdict(storm), "outcomes": outcomes})
