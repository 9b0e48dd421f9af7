# SPDX-License-Identifier: Apache-2.0
"""Series of latency and clock error that a run holds: `latencies_of` of `reports/CAP/latencies.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from reports.capabilities import CAPABILITIES, HERE
from reports.dependence import Floats
from reports.errors import ReportError
from reports.timeline.clock_record import Times

_WITH_ONE = tuple(name for name in CAPABILITIES if (HERE / name / "latencies.py").exists())


@dataclass(frozen=True)
class PolledAt:
    """A grid for whose next place what is sent at a steady pace waits.

    Attributes:
        grid_ns: From one place to the next.
        source: Whose clock paces what is sent.
        poll: Whose clock has the grid.
        rate_ppm: Rate of the source's clock less the poll's.
        rate_u_ppm: Its U.
    """

    grid_ns: float
    source: str
    poll: str
    rate_ppm: float
    rate_u_ppm: float


@dataclass(frozen=True, eq=False)
class Latencies:
    """One value after the other.

    Attributes:
        place: Folder of the evidence, below `evidence`.
        name: Of what, `whole`.
        at_ns: Shape (n,), in the order of time.
        value_ns: Shape (n,).
        polled: What they wait for; None: for no grid that is known.
    """

    place: str
    name: str
    at_ns: Times
    value_ns: Floats
    polled: PolledAt | None = None


def latencies_of_run(run: Path) -> tuple[list[Latencies], list[str]]:
    """Return all series of a run, and in words what of it cannot be read."""
    found: list[Latencies] = []
    problems: list[str] = []
    for name in _WITH_ONE:
        own, why_not = import_module(f"reports.{name}.latencies").latencies_of(run)
        found += own
        problems += why_not
    return found, problems


def latencies_by_folder(
    run: Path, capability: str, document: str, series_of: Callable[[str, Path], Iterable[Latencies]]
) -> tuple[list[Latencies], list[str]]:
    """Return the series of each folder of evidence with a document, and in words what cannot be read.

    Args:
        run: The run folder.
        capability: Folder of the evidence.
        document: Name of the file that a measurement has.
        series_of: Returns those of a measurement by its place in the evidence, and its folder; raises
            ReportError.
    """
    found: list[Latencies] = []
    problems: list[str] = []
    evidence = run / "evidence"
    for path in sorted((evidence / capability).rglob(document)):
        place = path.parent.relative_to(evidence).as_posix()
        try:
            found += series_of(place, path.parent)
        except ReportError as error:
            problems.append(f"{place}: {error}")
    return found, problems
