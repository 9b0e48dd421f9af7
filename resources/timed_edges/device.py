# SPDX-License-Identifier: Apache-2.0
"""What makes a virtual target's edges: its edge device, on this machine, and what tells it the guest's PHC.

On real machines the pins are hardware, and nothing has to be started.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from hw.errors import BenchError, CapabilityError, ConfigError
from hw.open_bench import OpenBench
from hw.protocols import Job
from hw.tools import local_tool
from resources.tools.jobs import end_and_fetch

SERVE_STEM = "edge-serve"
FOLLOW_STEM = "edge-follow-phc"


@dataclass(frozen=True)
class EdgeDevice:
    """The running edge device of a target, or, without jobs, hardware that runs by itself."""

    jobs: Sequence[Job] = ()

    def require_running(self) -> None:
        """Raise BenchError where the device has ended by itself: edges are missing then."""
        for job in self.jobs:
            try:
                code = job.wait(0.0)
            except BenchError:  # it still runs, or its node does not answer: others complain of that
                continue
            raise BenchError(f"{job.name}: ended by itself with exit code {code}")


@contextmanager
def run_edge_device(
    bench: OpenBench, target: str, scope_name: str, folder: Path
) -> Generator[EdgeDevice, None, None]:
    """Run the edge device of a virtual target until the context ends; does nothing for a real machine.

    The timecards are to be served meanwhile (`resources.clock_sync.timecard`). At the end both tools' answers
    lie in `folder`: `edge-serve.ndjson` and `edge-follow-phc.ndjson`.

    Args:
        bench: An open bench, the target's node powered on.
        target: Kind of the target in the bench file.
        scope_name: The oscilloscope that sees the edges; empty: the bench's first one.
        folder: Where the tools' answers go.

    Raises:
        ConfigError: The bench has no such target, or its edges would go to a real oscilloscope.
        CapabilityError: The target has no pins or no PTP hardware clock, or the bench no oscilloscope.
        BenchError: A tool failed.
    """
    spec = bench.spec.targets.get(target)
    if spec is None:
        raise ConfigError(
            f"{bench.spec.path}: no target {target!r}; there are: {', '.join(bench.spec.targets)}"
        )
    if spec.edges is None:
        raise CapabilityError(
            f"bench {bench.spec.name}: target {target} has no pins; add benchwright.targets.{target}.edges"
            f" to {bench.spec.path}"
        )
    node = bench.node(spec.node)
    page = bench.virtual.timecard_page(spec.node)
    if page is None:
        yield EdgeDevice()
        return
    if not spec.ptp_clock:
        raise CapabilityError(
            f"bench {bench.spec.name}: target {target} has no PTP hardware clock; add"
            f" benchwright.targets.{target}.ptp_clock to {bench.spec.path}"
        )
    port = bench.instruments.edge_port(scope_name)
    if port is None:
        raise ConfigError(
            f"{bench.spec.path}: benchwright.oscilloscopes.{scope_name or '(first)'}: must be virtual,"
            f" since the edges of target {target} are"
        )
    folder.mkdir(parents=True, exist_ok=True)
    serve = [str(local_tool("bw-edge")), "serve", "--page", f"{spec.node}={page}"]
    serve += ["--scope", f"{port[0]}:{port[1]}"]
    follow = [bench.tool(spec.node, "bw-edge"), "follow-phc", "--phc", spec.ptp_clock]
    with ExitStack() as stack:
        jobs: list[Job] = []
        for runner, argv, stem in ((bench.host, serve, SERVE_STEM), (node, follow, FOLLOW_STEM)):
            jobs.append(runner.start(argv, folder / stem))
            stack.callback(end_and_fetch, jobs[-1])
            jobs[-1].wait_ready()
        yield EdgeDevice(jobs)
