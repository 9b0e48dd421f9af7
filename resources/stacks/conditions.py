# SPDX-License-Identifier: Apache-2.0
"""The conditions under which stacks are compared, each put on for one turn."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hw.open_bench import OpenBench
from reports.stacks.loss import KnownLoss
from resources.control_loops.loads import known_load
from resources.loads.kinds import CompileLikeLoad
from resources.loads.load import Load
from resources.stacks.lossy_line import lossy_line, why_no_lossy_line
from resources.tools.experiment import Experiment

IDLE, LOADED = "idle", "loaded"
LOSSES_PPM = {"lossy_1000_ppm": 1000, "lossy_10000_ppm": 10_000}
"""Lines that lose so many frames of a million, in both directions."""
CONDITIONS = (IDLE, LOADED, *LOSSES_PPM)


@dataclass
class Achieved:
    """What a condition was in the end.

    Attributes:
        loss: Of a line that loses frames; None: it loses none.
    """

    loss: KnownLoss | None = None


def why_not(condition: str, bench: OpenBench, nodes: Sequence[str]) -> str:
    """Return why a bench cannot have a condition; empty: it can, as far as is known before.

    Args:
        condition: Of CONDITIONS.
        bench: An open bench; the nodes are on.
        nodes: The target's and those of the producers.
    """
    return why_no_lossy_line(bench, nodes) if condition in LOSSES_PPM else ""


@contextmanager
def condition_on(
    condition: str, bench: OpenBench, nodes: Sequence[str], lasts_s: int, folder: Path, seed: int
) -> Generator[Achieved, None, None]:
    """Put a condition on while the context lasts: `loaded` is a compile-like load of the target.

    Args:
        condition: Of CONDITIONS.
        bench: An open bench; the nodes are on.
        nodes: The target's, then those of the producers.
        lasts_s: After this time a load ends by itself.
        folder: What was achieved goes here.
        seed: Of the frames that a line loses: the same ones, of each interface, for all that have it.

    Yields:
        What it was; known when the context has ended.

    Raises:
        CapabilityError: The bench cannot have it.
        MeasurementError: The load ended early, or did nothing; a line lost nothing though many frames came.
    """
    achieved = Achieved()
    if condition == IDLE:
        yield achieved
        return
    with Experiment(bench) as experiment:
        if condition in LOSSES_PPM:
            with lossy_line(experiment, bench, nodes, LOSSES_PPM[condition], seed, folder) as known:
                yield achieved
            achieved.loss = known()
            return
        load = Load(bench, CompileLikeLoad(nodes[0], lasts_s), folder)
        load.start(experiment)
        yield achieved
        load.end()
        known_load(load, folder)
