# SPDX-License-Identifier: Apache-2.0
"""What competes with a loop, after the paper: a build on a machine of it, and bulk data between two."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hw.errors import MeasurementError
from hw.open_bench import OpenBench
from reports.control_loops.load import KnownLoad, read_load
from reports.errors import ReportError
from resources.loads.kinds import CompileLikeLoad, LoadKind, NetworkLoad
from resources.loads.load import Load
from resources.tools.experiment import Experiment

COMPILE_LIKE, NETWORK = CompileLikeLoad.kind, NetworkLoad.kind
LOADS = COMPILE_LIKE, NETWORK
IDLE = "idle"
"""What records call no load."""


def load_of_loop(
    kind: str, duration_s: int, builds_on: str, between: Sequence[tuple[str, str]], rate_mbit: int
) -> LoadKind | None:
    """Return a load of a loop; None: there is none.

    Args:
        kind: One of LOADS; empty: none.
        duration_s: After this time it ends by itself.
        builds_on: Node that a compile-like load is on.
        between: Node and address, twice: from where to where bulk data go.
        rate_mbit: Of them, in Mbit/s of payload.
    """
    if not kind:
        return None
    if kind == COMPILE_LIKE:
        return CompileLikeLoad(builds_on, duration_s)
    (sender, _), (node, address) = between
    return NetworkLoad(node, duration_s, sender=sender, address=address, rate_mbit=rate_mbit)


def start_load(bench: OpenBench, experiment: Experiment, what: LoadKind | None, folder: Path) -> Load | None:
    """Start a load where there is one, which the experiment ends if nobody else does."""
    if what is None:
        return None
    load = Load(bench, what, folder)
    load.start(experiment)
    return load


def end_load(load: Load | None, folder: Path) -> KnownLoad | None:
    """End a load and return what it was.

    Raises:
        MeasurementError: It ended too early, or did nothing.
    """
    if load is None:
        return None
    load.end()
    return known_load(load, folder)


def known_load(load: Load, folder: Path) -> KnownLoad:
    """Return what a load was that has ended; raises MeasurementError: it did nothing."""
    known = KnownLoad(load.what.kind, load.what.node)
    try:
        found = read_load(folder, known)
    except ReportError as error:
        raise MeasurementError(str(error)) from error
    if not found.did_something:
        raise MeasurementError(f"load {known.kind} on {known.node} did nothing: {found.words}")
    return known
