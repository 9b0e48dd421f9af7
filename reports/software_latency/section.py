# SPDX-License-Identifier: Apache-2.0
"""The section on software latency: every device's own, the round trips, and the sums that have to agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reports.errors import ReportError
from reports.record.measurement import Measurement
from reports.section import Measured, Shown
from reports.software_latency.evidence import FOLDER, ROUND_TRIPS, SoftwareLatencies, load_software_latencies
from reports.software_latency.verdict import CLOSURE, QUANTITY


@dataclass(frozen=True)
class SoftwareSection(Shown):
    """What the section shows.

    Attributes:
        found: What the round trips tell; None: they could not be read, `problem` says why.
    """

    judged: tuple[Measurement, ...]
    found: SoftwareLatencies | None
    problem: str = ""

    @property
    def records(self) -> Sequence[Measurement]:
        """Return the records that it shows."""
        return self.judged

    @property
    def askers(self) -> tuple[str, ...]:
        """Return the devices that asked, in the order of their measurement."""
        measured = self.found.estimate.measured if self.found is not None else ()
        return tuple(dict.fromkeys(each.asker for each in measured))

    @property
    def reflectors(self) -> tuple[str, ...]:
        """Return the devices that sent back: those that asked first, in their order."""
        measured = self.found.estimate.measured if self.found is not None else ()
        others = {each.reflector for each in measured}
        asked = [name for name in self.askers if name in others]
        return tuple(dict.fromkeys([*asked, *(each.reflector for each in measured)]))

    @property
    def means_ns(self) -> dict[tuple[str, str], float]:
        """Return the mean round trip of each direction, in ns; of one that was measured again the last."""
        measured = self.found.estimate.measured if self.found is not None else ()
        return {(each.asker, each.reflector): float(each.cumulants[0]) for each in measured}


def gather_software_latency(measured: Measured) -> SoftwareSection | None:
    """Return the section of a target; None: nothing was measured."""
    folder = measured.evidence(FOLDER)
    judged = tuple(each for each in measured.records if each.quantity in (QUANTITY, CLOSURE))
    if not judged and not (folder / ROUND_TRIPS).exists():
        return None
    try:
        return SoftwareSection(judged, load_software_latencies(folder))
    except ReportError as error:
        return SoftwareSection(judged, None, str(error))
