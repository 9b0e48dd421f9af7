# SPDX-License-Identifier: Apache-2.0
"""The section on the real-time baseline: wake-ups of each CPU, idle and beside each load."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from reports.errors import RecordError
from reports.record.measurement import Measurement
from reports.rt_baseline.capability import P9999, WAKEUP_LATENCY
from reports.rt_baseline.cyclictest import CpuWakeups
from reports.rt_baseline.evidence import FOLDER, IDLE, WAKEUPS, Wakeups, load_wakeups
from reports.rt_baseline.plots import figure_wakeups
from reports.rt_baseline.verdict import WakeupValue, value_of
from reports.section import PrintFigure, Section, TargetData, TargetView


@dataclass(frozen=True)
class CpuRow:
    """What the table shows of a CPU, in ns; of a latency in whole µs."""

    cpu: CpuWakeups
    median_ns: int
    p9999: WakeupValue


@dataclass(frozen=True)
class BaselineSection(TargetView):
    """What the section shows.

    Attributes:
        cases: Idle first.
        problems: Why a case has no figure.
    """

    judged: tuple[Measurement, ...]
    cases: tuple[Wakeups, ...]
    problems: tuple[str, ...] = ()

    @property
    def records(self) -> Sequence[Measurement]:
        """Return the records that it shows."""
        return self.judged

    @property
    def evidence_problems(self) -> Iterable[str]:
        """Return why a case has no figure."""
        return self.problems

    def rows(self, case: Wakeups) -> list[CpuRow]:
        """Return the CPUs of a case."""
        return [
            CpuRow(each, each.at_rank_us(-(-each.cycles // 2)) * 1000, value_of(each, P9999))
            for each in case.run.cpus
        ]

    @property
    def figures(self) -> list[tuple[str, str]]:
        """Return figures with their captions."""
        return [
            (
                figure_wakeups(f"wakeups-{place}", each),
                f"Wake-ups beside {each.beside}: how many had each latency, by CPU, as OSADL draws it.",
            )
            for place, each in enumerate(self.cases)
        ]

    @property
    def print_figures(self) -> Iterable[PrintFigure]:
        """Return the figures for the dossier."""
        return [PrintFigure(svg, caption, "wide") for svg, caption in self.figures]


def gather_baseline(measured: TargetData) -> BaselineSection | None:
    """Return the section of a target; None: nothing was measured."""
    judged = tuple(each for each in measured.records if each.quantity == WAKEUP_LATENCY)
    folders = sorted(_folders(measured.evidence(FOLDER)), key=lambda each: (each.name != IDLE, each.name))
    if not folders and not judged:
        return None
    cases: list[Wakeups] = []
    problems: list[str] = []
    for folder in folders:
        try:
            cases.append(load_wakeups(folder))
        except RecordError as error:
            problems.append(f"{folder.name}: {error}")
    return BaselineSection(judged, tuple(cases), tuple(problems))


def _folders(place: Path) -> list[Path]:
    return [each.parent for each in place.glob(f"*/{WAKEUPS}")]


SECTION = Section((("rt-baseline", "Real-time baseline"),), "rt_baseline/section.html.j2", gather_baseline)
