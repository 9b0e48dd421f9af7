# SPDX-License-Identifier: Apache-2.0
"""A run with events, and beside it a graph of filters with a filter of a site."""

from __future__ import annotations

from pathlib import Path

from reports.__main__ import main

PLACE = "daq_replay/linux-rt/attempt-9"
GRAPH = """\
folder = "site"

[steps]
events = {filter = "run", timeline = "*/attempt-9"}
sent = {filter = "select", inputs = "events", name = "sent"}
read = {filter = "select", inputs = "events", name = "last byte read"}
ways = {filter = "match", inputs = ["sent", "read"], by = ["lane", "tag"], within_ns = 1_000_000_000}
length = {filter = "interval", inputs = "ways"}
doubled = {filter = "times", inputs = "length", factor = 2}
figures = {filter = "statistics", inputs = ["length", "doubled"]}
table = {filter = "csv", inputs = "figures"}
wrong = {filter = "contradictions", inputs = "ways"}
clocks = {filter = "jsonl", inputs = "wrong"}
said = {filter = "flows", timeline = "*/attempt-9"}
story = {filter = "narration", inputs = "said"}
bars = {filter = "histogram", inputs = "length"}
picture = {filter = "plot", inputs = "bars"}
trace = {filter = "export", inputs = "ways", form = "perfetto"}
again = {filter = "export", inputs = "events", form = "ctf"}
threads = {filter = "kernel", path = "evidence/realtime_ethernet/linux-rt/traced-64-ring.gz", node = "target"}
cpu = {filter = "csv", inputs = "threads"}
"""
SITE = """\
from __future__ import annotations
from dataclasses import dataclass, replace
from reports.timeline.processing.data import Values
from reports.timeline.processing.filters import named_filter

@dataclass
class Factor:
    value: int

@named_filter("times")
def times(found: Values, *, factor: int) -> Values:
    return replace(found, value=found.value * Factor(factor).value)
"""


def processed(run: Path, *options: str) -> int:
    """Run the command with the graph, and return its exit code."""
    return main(["timeline", str(run), "--process", str(run.parents[1] / "late.toml"), *options])


def files_of(folder: Path) -> dict[str, bytes]:
    """Return all files below a folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }
