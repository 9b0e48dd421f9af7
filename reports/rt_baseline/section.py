# SPDX-License-Identifier: Apache-2.0
"""The section on the real-time baseline: wake-ups and hardware noise, idle and beside each load."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from reports.errors import RecordError
from reports.record.measurement import Measurement
from reports.rt_baseline.capability import HARDWARE_NOISE, P9999, WAKEUP_LATENCY
from reports.rt_baseline.cyclictest import CpuWakeups
from reports.rt_baseline.evidence import FOLDER, IDLE, WAKEUPS, Wakeups, load_wakeups
from reports.rt_baseline.noise import NOISE, Noises, load_noise
from reports.rt_baseline.plots import figure_wakeups
from reports.rt_baseline.timerlat import TIMERLAT, TimerlatFacts, read_timerlat
from reports.rt_baseline.verdict import WakeupValue, value_of
from reports.section import PrintFigure, Section, TargetData, TargetView

T = TypeVar("T")


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
        noises: Likewise, where the kernel has a tracer of it.
        splits: Likewise.
        problems: Why a case has no figure.
    """

    judged: tuple[Measurement, ...]
    cases: tuple[Wakeups, ...]
    noises: tuple[Noises, ...] = ()
    splits: tuple[TimerlatFacts, ...] = ()
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
    judged = tuple(each for each in measured.records if each.quantity in (WAKEUP_LATENCY, HARDWARE_NOISE))
    place = measured.evidence(FOLDER)
    problems: list[str] = []
    cases = tuple(_read(place, WAKEUPS, load_wakeups, problems))
    noises = tuple(_read(place, f"noise/{NOISE}", load_noise, problems))
    splits = tuple(_read(place, f"timerlat/{TIMERLAT}", read_timerlat, problems))
    if not any((judged, cases, noises, splits, problems)):
        return None
    return BaselineSection(judged, cases, noises, splits, tuple(problems))


def _read(place: Path, file: str, read: Callable[[Path], T], problems: list[str]) -> Iterator[T]:
    """Yield what each case has of a file, idle first; note which of them have no figure."""
    for found in sorted(place.glob(f"*/{file}"), key=lambda each: (IDLE not in each.parts, each)):
        folder = found.parent
        try:
            yield read(folder)
        except RecordError as error:
            problems.append(f"{folder.relative_to(place)}: {error}")


SECTION = Section((("rt-baseline", "Real-time baseline"),), "rt_baseline/section.html.j2", gather_baseline)
