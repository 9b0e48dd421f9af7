# SPDX-License-Identifier: Apache-2.0
"""The conditions under which stacks are compared, each put on for one turn."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from hw.open_bench import OpenBench
from resources.control_loops.loads import known_load
from resources.loads.kinds import CompileLikeLoad
from resources.loads.load import Load
from resources.tools.experiment import Experiment

IDLE, LOADED = "idle", "loaded"
CONDITIONS = (IDLE, LOADED)


@contextmanager
def condition_on(
    condition: str, bench: OpenBench, node: str, lasts_s: int, folder: Path
) -> Generator[None, None, None]:
    """Put a condition on while the context lasts: `loaded` is a compile-like load of the target.

    Args:
        condition: Of CONDITIONS.
        bench: An open bench; the node is on.
        node: Of the target.
        lasts_s: After this time a load ends by itself.
        folder: What the load achieved goes here.

    Raises:
        CapabilityError: The node cannot have the load.
        MeasurementError: The load ended early, or did nothing.
    """
    if condition == IDLE:
        yield
        return
    with Experiment(bench) as experiment:
        load = Load(bench, CompileLikeLoad(node, lasts_s), folder)
        load.start(experiment)
        yield
        load.end()
        known_load(load, folder)
