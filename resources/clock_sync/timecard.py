# SPDX-License-Identifier: Apache-2.0
"""The reference in a target: on a virtual bench the timecard that this machine serves to its guests.

On real machines the card is hardware that follows the time server by itself, and nothing has to be started.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hw.errors import BenchError
from hw.open_bench import OpenBench
from hw.scratch import scratch_folder
from resources.tools.jobs import end_and_fetch

PAGE_CLOCK = "card:"
"""Before the file of a page that is no device of the machine."""
PAGE_BYTES = 32768


def make_page(bench: OpenBench, node: str, clock: str) -> None:
    """Make the file of a page on a machine that shares its files with this one; others have their device.

    Args:
        bench: An open bench; the node is on.
        node: Whose timecard it is.
        clock: As `bw-clock` names it there.
    """
    if not clock.startswith(PAGE_CLOCK) or bench.virtual.timecard_page(node) is not None:
        return
    with scratch_folder("timecard") as scratch:
        page = Path(scratch) / "page"
        page.write_bytes(bytes(PAGE_BYTES))
        bench.node(node).put(page, clock.removeprefix(PAGE_CLOCK))


@contextmanager
def serve_timecards(
    bench: OpenBench, guests: Sequence[str], source: str | None, folder: Path
) -> Generator[None, None, None]:
    """Serve virtual timecards until the context ends; does nothing for real machines.

    Args:
        bench: An open bench, its guests powered on.
        guests: Nodes whose timecards are served.
        source: Node whose clock the timecards show: the time server; it has to be a guest too. None: this
            machine's own clock, where it matters not what time the timecards show.
        folder: Where the tools' answers go.
    """
    publishers = [] if source is None else [source]
    pages = {name: bench.virtual.timecard_page(name) for name in dict.fromkeys([*guests, *publishers])}
    if all(page is None for page in pages.values()):
        yield
        return
    real = [name for name, page in pages.items() if page is None]
    if real:
        raise BenchError(f"timecard: {real[0]} is off, or no guest: it shares no page with this machine")
    folder.mkdir(parents=True, exist_ok=True)
    host = bench.node("switch")
    argv = [bench.tool("switch", "bw-clock"), "card", "serve", "--source", source or "host"]
    for name, page in pages.items():
        argv += ["--page", f"{name}={page}"]
    with ExitStack() as stack:
        server = host.start(argv, folder / "card-serve")
        stack.callback(end_and_fetch, server)
        server.wait_ready()
        for name in publishers:
            publish = [bench.tool(name, "bw-clock"), "card", "publish"]
            publisher = bench.node(name).start(publish, folder / "card-publish")
            stack.callback(end_and_fetch, publisher)
            publisher.wait_ready()
        yield
