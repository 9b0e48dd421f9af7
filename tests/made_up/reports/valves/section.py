# SPDX-License-Identifier: Apache-2.0
"""What the report shows of valves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reports.valves.capability import QUANTITY

from reports.record.measurement import Measurement
from reports.section import PrintFigure, SampleReader, Samples, Section, TargetData, TargetView

SVG = '<svg xmlns="http://www.w3.org/2000/svg" id="valve"><title>Valve figure</title></svg>'


@dataclass(frozen=True)
class Valves(TargetView):
    """What the section shows."""

    found: tuple[Measurement, ...]

    @property
    def records(self) -> Sequence[Measurement]:
        """Return the records."""
        return self.found

    @property
    def print_figures(self) -> Sequence[PrintFigure]:
        """Return a figure."""
        return (PrintFigure(SVG, "How late the valve opened.", "half"),)


def gather(measured: TargetData) -> Valves | None:
    """Return what a run has on valves."""
    found = tuple(record for record in measured.records if record.quantity == QUANTITY)
    return Valves(found) if found else None


def samples(run: Path) -> SampleReader:
    """Return the reader of delays."""

    def read(record: Measurement) -> Samples | None:
        if record.quantity != QUANTITY:
            return None
        delays = json.loads((run / record.evidence[0].path).read_text())["delays_ns"]
        buckets = tuple((delay, 1, 1) for delay in delays)
        mean = sum(delays) / len(delays)
        return Samples("opened - told to", len(delays), delays[0], mean, delays[-1], buckets, False)

    return read


SECTION = Section((("valves", "Valves"),), "valves/section.html.j2", gather, samples)
