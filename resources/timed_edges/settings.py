# SPDX-License-Identifier: Apache-2.0
"""How many timed edges a profile asks for, and what an oscilloscope shows of them: `timed_edges.toml`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hw.errors import ConfigError
from hw.fields import Fields
from hw.toml_file import read_toml
from reports.timed_edges.capability import METHODS
from reports.timed_edges.trial import CLOCK_EDGE
from resources.clock_sync.settings import StackSpec, stacks_of_any_kind

TIMES = Path(__file__).with_name("times.toml")
VIEWS_FILE = Path(__file__).with_name("timed_edges.toml")
VIEWS = (*METHODS, f"{CLOCK_EDGE}-timecard", f"{CLOCK_EDGE}-phc")


@dataclass(frozen=True)
class EdgeTimes:
    """How many edges a profile asks for.

    Attributes:
        edges: Of each method.
        period_ns: From one to the next. A round one would keep all edges at the same phase of the target's
            timer interrupt and of the ticks of its pins: by chance they would all be disturbed, or none.
        error_edges: Of the trials without and with a mistake in the correlation, each.
        latches: Edges of each method that is seen by the latched time of its own edge.
        clocks: Clock stacks whose own edges are watched.
        clock_edges: Of each of them.
        clock_period_us: From one to the next.
        trial_max_s: Time after which fewer edges have to do, of each trial.
    """

    edges: int
    period_ns: int
    error_edges: int
    latches: int
    clocks: tuple[str, ...]
    clock_edges: int
    clock_period_us: int
    trial_max_s: int


@dataclass(frozen=True)
class EdgeView:
    """What an oscilloscope is to show.

    Attributes:
        window_ns: Length of a record.
        centre_ns: Its middle, after the reference edge.
        sample_rate_hz: At least.
        bandwidth_limit_hz: Of both inputs; None: what the bench file says.
        segments: Records of one arming.
    """

    window_ns: int
    centre_ns: int
    sample_rate_hz: float
    bandwidth_limit_hz: float | None
    segments: int


def edge_times(table: Fields) -> EdgeTimes:
    """Read the table of a profile; raises ConfigError: names file, field and allowed range."""
    times = EdgeTimes(
        edges=table.integer("edges", 1, 100_000_000),
        period_ns=table.integer("period_ns", 500_000, 1_000_000_000),
        error_edges=table.integer("error_edges", 1, 100_000_000),
        latches=table.integer("latches", 1, 100_000_000),
        clocks=table.texts("clocks", stacks_of_any_kind(_keeps_a_clock)),
        clock_edges=table.integer("clock_edges", 1, 100_000_000),
        clock_period_us=table.integer("clock_period_us", 100, 1_000_000),
        trial_max_s=table.integer("trial_max_s", 1, 7 * 86_400),
    )
    table.finish()
    return times


def _keeps_a_clock(stack: StackSpec) -> bool:
    return stack.lock is not None


def load_view(name: str, simulated: bool, path: Path = VIEWS_FILE) -> EdgeView:
    """Read what an oscilloscope is to show.

    Args:
        name: One of VIEWS.
        simulated: Whether the bench is a virtual one.
        path: The data file.

    Raises:
        ConfigError: There is no such view, or the file is wrong; names file, field and allowed range.
    """
    document = read_toml(path)
    root = Fields(document, str(path), "")
    kinds = {kind: root.table_of(kind) for kind in ("simulated", "hardware")}
    root.finish()
    views = {kind: {view: _view(table) for view, table in tables.items()} for kind, tables in kinds.items()}
    for kind, found in views.items():
        unknown = sorted(found.keys() - set(VIEWS))
        if unknown:
            raise ConfigError(f"{path}: {kind}.{unknown[0]}: no such view; known: {', '.join(VIEWS)}")
    kind = "simulated" if simulated else "hardware"
    if name not in views[kind]:
        raise ConfigError(f"{path}: {kind}: no view {name!r}; there are: {', '.join(views[kind])}")
    return views[kind][name]


def _view(table: Fields) -> EdgeView:
    limit_mhz = table.number("bandwidth_limit_mhz", 0.0, 100_000.0)
    window_ns = table.integer("window_ns", 10, 1_000_000_000)
    half_ns = window_ns * 9 // 20  # the reference edge has to be in the record
    view = EdgeView(
        window_ns=window_ns,
        centre_ns=table.integer("centre_ns", -half_ns, half_ns, 0),
        sample_rate_hz=table.number("sample_rate_mhz", 1.0, 100_000.0) * 1e6,
        bandwidth_limit_hz=limit_mhz * 1e6 if limit_mhz else None,
        segments=table.integer("segments", 2, 1_000_000),
    )
    table.text("source")
    table.finish()
    return view
