# SPDX-License-Identifier: Apache-2.0
"""How long a second `make qualify` takes, of three targets by the default profile, and how much is measuring.

The first one, which may have an image to build, is run only where there is no run folder yet. Unlike the
other benchmarks it runs once: it takes minutes, and it wants the machine for itself. Measuring is the counted
time of the replays, that of the known-delay check too: neither their warm-up nor boot,
provisioning, clocks or the report.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from datetime import datetime
from pathlib import Path

from bench.lab.options import Options, takes
from bench.lab.report import REPOSITORY, Bar, publish, say

COMMAND = ["make", "qualify"]
WALL_S, WALL_REPEATED_S = 420.0, 510.0
"""Where no replay is repeated, and where one is."""
LATEST = REPOSITORY / "results" / "latest"


def qualify() -> tuple[float, int, Path | None]:
    """Run the command; return how long it took, in s, exit code, and run folder; None: it has none."""
    with tempfile.TemporaryDirectory(prefix="bw-qualify-") as folder:
        told = Path(folder, "run")
        environment = {**os.environ, "QUALIFY_RUN_FILE": str(told)}
        begin = time.monotonic()
        done = subprocess.run(
            COMMAND,
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            check=False,
            env=environment,
        )
        wall_s = time.monotonic() - begin
        run = Path(told.read_text().rstrip("\n")) if told.exists() else None
    return wall_s, done.returncode, run


def replays(run: Path) -> dict[str, dict[str, float]]:
    """Return counted and warm-up time in s of each replay that came to a result, by its folder."""
    found: dict[str, dict[str, float]] = {}
    for plan in sorted(run.glob("evidence/**/plan.toml")):
        lines = (plan.parent / "recv.ndjson").read_text().splitlines()
        if not lines or not json.loads(lines[-1]).get("complete"):
            continue
        settings = tomllib.loads(plan.read_text())["run"]
        found[str(plan.parent.relative_to(run))] = {
            "counted_s": settings["duration_ms"] / 1000,
            "warmup_s": settings["warmup_ms"] / 1000,
        }
    return found


def repeated(run: Path) -> int:
    """Return how many replays were made once more, because streams had no verdict."""
    return len(json.loads((run / "run.json").read_text())["attempts"])


def suite_s(run: Path) -> float:
    """Return the time between start and end in the run's manifest."""
    manifest = json.loads((run / "run.json").read_text())
    start, end = (datetime.fromisoformat(manifest[key]) for key in ("start_utc", "end_utc"))
    return (end - start).total_seconds()


@takes()
def main(_options: Options) -> int:
    """Run the benchmark."""
    if not LATEST.exists():
        say("the first run, not timed")
        qualify()
    wall_s, code, run = qualify()
    if run is None:
        say("no run folder was written")
        return 1
    parts = replays(run)
    counted_s = sum(part["counted_s"] for part in parts.values())
    figures = {
        "qualify_wall_s": wall_s,
        "suite_s": suite_s(run),
        "counted_s": counted_s,
        "measuring_share": counted_s / wall_s,
        "replay_share": (counted_s + sum(part["warmup_s"] for part in parts.values())) / wall_s,
        "repeated": repeated(run),
        "exit_code": code,
    }
    bars = {"qualify_wall_s": Bar(WALL_REPEATED_S if repeated(run) else WALL_S)}
    return publish("qualify", figures, bars, {"run": run.name, "replays": parts})
