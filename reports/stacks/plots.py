# SPDX-License-Identifier: Apache-2.0
"""The picture that answers which stack should be deployed: a line for each stack under each condition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.lines import Line2D

from reports.curves import MARKERS, time_axis
from reports.stacks.evidence import StackNeeds
from reports.stacks.per_stack import CpuOf, OfType
from reports.svg import INKS, new_figure, style, to_svg
from reports.units import NO_VALUE, format_value

INKS_OF_TYPES = ("type0", "type1", "type2", "type3")
COLUMNS = ("within budget", "lost", "CPU a message", "needs")
AT = (0.0, 0.17, 0.3, 0.7)
"""Where the columns of words begin, of their width."""
SIZE = 8.5


@dataclass(frozen=True)
class StackLine:
    """What the picture and the table say of one stack under one condition.

    Attributes:
        of_types: Of each type of streams that it carried.
    """

    needs: StackNeeds
    of_types: tuple[OfType, ...]
    cpu: CpuOf

    @property
    def condition(self) -> str:
        """Return the condition."""
        return self.cpu.condition

    @property
    def within(self) -> str:
        """Return the share of messages within their budget, of the type that has the least."""
        return _worst([each.over_share for each in self.of_types], "within budget")

    @property
    def lost(self) -> str:
        """Return the share that was lost, of the type that has the most."""
        return _worst([each.lost_share for each in self.of_types], "lost")

    @property
    def cpu_words(self) -> str:
        """Return the CPU time a message of both ends."""
        ends = (("target", self.cpu.target_ns), ("others", self.cpu.others_ns))
        return ", ".join(f"{name} {format_value(ns, 'ns', 3)}" for name, ns in ends)

    @property
    def needs_words(self) -> str:
        """Return what it needs."""
        needs = self.needs
        found = [
            *(["root"] if needs.needs_root else []),
            *([needs.driver] if needs.driver else []),
            *(["both ends"] if needs.both_ends else []),
        ]
        return ", ".join(found) or "nothing"


def _worst(shares: Sequence[float | None], what: str) -> str:
    known = [each for each in shares if each is not None]
    if not known:
        return NO_VALUE
    percent = 100 * max(known)
    if what == "lost":
        return f"{percent:.3g} %"
    # what rounds to all, and is not all, is told by what is missing
    return "all" if not percent else f"{100 - percent:.{max(1, 1 - math.floor(math.log10(percent)))}f} %"


def figure_stacks(name: str, lines: Sequence[StackLine]) -> str:
    """Draw median and p99 of each type beside its budget, and in words what else decides.

    Args:
        name: Short name, unique on the page.
        lines: From above to below, those of one condition together; at least one.
    """
    types = list(dict.fromkeys(each.stream_type for line in lines for each in line.of_types))
    with style(name):
        figure = new_figure(11.6, 1.2 + 0.42 * len(lines))
        left, right = figure.subplots(1, 2, width_ratios=(5, 6.6), sharey=True)
        for place, line in enumerate(reversed(lines)):
            for each in line.of_types:
                at = place + 0.3 - 0.6 * (types.index(each.stream_type) + 0.5) / len(types)
                _draw(left, each, at, types.index(each.stream_type))
            words = (line.within, line.lost, line.cpu_words, line.needs_words)
            for x, text in zip(AT, words, strict=True):
                right.text(x, place, text, fontsize=SIZE, va="center")
        _axes(left, right, lines)
        handles = [
            Line2D(
                [], [], color=_ink(place), marker=_mark(place), markersize=5, label=f"{kind}: median to p99"
            )
            for place, kind in enumerate(types)
        ]
        handles.append(
            Line2D([], [], color=INKS["fail"], marker="|", markersize=9, linestyle="none", label="budget")
        )
        figure.legend(handles=handles, loc="outside upper left", ncols=4, fontsize=SIZE)
        said = "; ".join(
            f"{line.needs.name}, {line.condition}: within budget {line.within}, lost {line.lost},"
            f" needs {line.needs_words}"
            for line in lines
        )
        return to_svg(figure, name, "Network stacks beside each other", f"{said}.")


def _draw(axes: Any, each: OfType, at: float, kind: int) -> None:
    axes.plot([each.budget_ns], [at], marker="|", color=INKS["fail"], markersize=8)
    if each.median_ns is None or each.p99_ns is None or each.median_ns <= 0:
        return
    axes.hlines(at, each.median_ns, each.p99_ns, color=_ink(kind), linewidth=2)
    axes.plot([each.median_ns], [at], marker=_mark(kind), color=_ink(kind), markersize=5)


def _ink(kind: int) -> str:
    return INKS[INKS_OF_TYPES[kind % len(INKS_OF_TYPES)]]


def _mark(kind: int) -> str:
    return MARKERS[kind % len(MARKERS)]


def _axes(left: Any, right: Any, lines: Sequence[StackLine]) -> None:
    every = [each for line in lines for each in line.of_types]
    times = [ns for each in every for ns in (each.budget_ns, each.median_ns, each.p99_ns) if ns and ns > 0]
    if times:
        left.set_xscale("log")
        left.set_xlim(
            10.0 ** math.floor(math.log10(min(times))), 10.0 ** math.ceil(math.log10(max(times)) + 1e-9)
        )
        time_axis(left.xaxis, minor=True)
    left.grid(axis="x")
    left.set_axisbelow(True)
    labels = [f"{line.needs.name}, {line.condition}" for line in reversed(lines)]
    left.set_yticks(range(len(lines)), labels)
    left.set_ylim(-0.6, len(lines) - 0.4)
    left.set_xlabel("latency")
    right.set_axis_off()
    right.set_xlim(0, 1)
    for x, text in zip(AT, COLUMNS, strict=True):
        right.text(x, len(lines) - 0.45, text, fontsize=SIZE, color=INKS["muted"], va="bottom")
