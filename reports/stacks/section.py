# SPDX-License-Identifier: Apache-2.0
"""The section on network stacks against each other: which one should be deployed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reports.errors import RecordError
from reports.record.measurement import Measurement
from reports.section import PrintFigure, Section, TargetData, TargetView
from reports.stacks.capability import QUANTITIES
from reports.stacks.compare import Comparison, compare
from reports.stacks.evidence import FOLDER, STACKS, StackTurns, load_stack_turns
from reports.stacks.per_stack import cpu_of, of_types
from reports.stacks.plots import StackLine, figure_stacks

CAPTION = (
    "Which stack should be deployed: median to p99 of each type of streams, all turns together, beside the "
    "budget; the share within budget of the type that has the least; lost of the type that has the most."
)


@dataclass(frozen=True)
class StackSection(TargetView):
    """What the section shows.

    Attributes:
        kept: Facts of the evidence; None: it could not be read, or there is none.
        lines: A stack under a condition each.
        problems: Why evidence could not be read.
    """

    judged: tuple[Measurement, ...]
    kept: StackTurns | None = None
    comparison: Comparison | None = None
    lines: tuple[StackLine, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def records(self) -> Sequence[Measurement]:
        """Return the records that it shows."""
        return self.judged

    @property
    def evidence_problems(self) -> Iterable[str]:
        """Return why evidence could not be read."""
        return self.problems

    @property
    def figures(self) -> list[tuple[str, str]]:
        """Return the picture with its caption."""
        return [(figure_stacks("stacks", self.lines), CAPTION)] if self.lines else []

    @property
    def print_figures(self) -> Iterable[PrintFigure]:
        """Return the picture for the dossier."""
        return [PrintFigure(svg, caption, "wide") for svg, caption in self.figures]


def gather_stacks(measured: TargetData) -> StackSection | None:
    """Return the section of a target; None: nothing was compared."""
    judged = tuple(each for each in measured.records if each.quantity in QUANTITIES)
    folder = measured.evidence(FOLDER)
    if not (folder / STACKS).exists():
        return StackSection(judged) if judged else None
    try:
        kept, turns = load_stack_turns(folder)
    except RecordError as error:
        return StackSection(judged, problems=(str(error),))
    values = of_types(turns, kept.names, kept.budgets_ns)
    needs = {each.name: each for each in kept.stacks}
    lines = tuple(
        StackLine(
            needs[cpu.stack],
            tuple(each for each in values if (each.stack, each.condition) == (cpu.stack, cpu.condition)),
            cpu,
        )
        for cpu in cpu_of(turns, kept.names)
    )
    return StackSection(judged, kept, compare(kept.names, turns, kept.budgets_ns), lines)


SECTION = Section((("stacks", "Which stack should I deploy?"),), "stacks/section.html.j2", gather_stacks)
