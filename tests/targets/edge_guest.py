# SPDX-License-Identifier: Apache-2.0
"""A guest with a PTP card whose edge device runs: its edges go to a listening oscilloscope."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from hw.protocols import Job, Node
from hw.session import Bench, open_bench
from hw.tools import local_tool
from resources.clock_sync.timecard import serve_timecards
from resources.tools.jobs import end_and_fetch
from tests.traffic_gen.edge.lab import ListeningScope

BENCH = Path(__file__).with_name("one_guest.yaml")
GUEST = "guest"
PHC = "/dev/ptp0"


@dataclass(frozen=True)
class EdgeGuest:
    """The open bench, and what runs on it until the end.

    Attributes:
        serve: The edge device's server, on this machine.
        follow: What stands for the card's firmware, in the guest.
    """

    bench: Bench
    scope: ListeningScope
    serve: Job
    follow: Job


@contextmanager
def edge_guest(folder: Path) -> Generator[EdgeGuest]:
    """Boot the guest and run its edge device until the context ends."""
    file = folder / BENCH.name
    text = BENCH.read_text(encoding="utf-8")
    file.write_text(text.replace("image: embedded", "image: linux-rt, ptp_card: true"), encoding="utf-8")
    scope = ListeningScope()
    with ExitStack() as stack:
        stack.callback(scope.close)
        bench = stack.enter_context(open_bench(file))
        bench.power_on([GUEST])
        stack.enter_context(serve_timecards(bench, [GUEST], None, folder))
        page = f"{GUEST}={bench.virtual.timecard_page(GUEST)}"

        def start(name: str, node: Node, argv: list[str]) -> Job:
            job = node.start(argv, folder / name)
            stack.callback(end_and_fetch, job)
            job.wait_ready()
            return job

        argv = [str(local_tool("bw-edge")), "serve", "--page", page, "--scope", scope.address]
        serve = start("serve", bench.host, argv)
        argv = [bench.tool(GUEST, "bw-edge"), "follow-phc", "--phc", PHC]
        follow = start("follow", bench.node(GUEST), argv)
        yield EdgeGuest(bench, scope, serve, follow)
