# SPDX-License-Identifier: Apache-2.0
"""The margins of all values in one picture: a line a target and quantity, and a network stack of several."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.lines import Line2D

from reports.curves import MARKERS, share_label
from reports.page.model import Report
from reports.record.measurement import Measurement
from reports.run.tally import relative_margin
from reports.svg import INKS, new_figure, style, to_svg

_SHARE_MIN, _SHARE_MAX = -0.5, 1.0
"""Margins outside of these are drawn at the edge, as a triangle; the least of a line with its number."""
_RIGHT = 1.02
_LINE_IN = 0.21
_HEAD_IN = 0.95
_NAME_PT = 7.5
_NAME_GAP_PT = 6
_WIDE_IN, _NARROW_IN = 11.6, 5.8
"""Widths of the figure: of a page, and of a small window, in which the words are as large."""
_WORDS_PT = 185
"""Room for the words to the left of the axis, at most."""

Line = tuple[str, int, Sequence[tuple[float, Measurement]]]
"""Words, number of the target, and each value after its margin as a share of the limit."""


def figures_margins(reports: Sequence[Report]) -> tuple[str, ...]:
    """Return the figure for a page and the one for a small window; empty: there is no margin."""
    drawn = (figure_margins("margins", reports), figure_margins("margins-narrow", reports, _NARROW_IN))
    return drawn if all(drawn) else ()


def figure_margins(name: str, reports: Sequence[Report], width_in: float = _WIDE_IN) -> str:
    """Draw the margins of all targets as SVG; empty: there is none.

    Args:
        name: Short name, unique on the page.
        reports: The report of each target.
        width_in: Width in inches.
    """
    lines = _lines(reports)
    if not lines:
        return ""
    least = [min(values, key=lambda pair: pair[0]) for _words, _number, values in lines]
    with style(name):
        figure = new_figure(width_in, _HEAD_IN + _LINE_IN * len(lines))
        axes = figure.add_subplot()
        for place, (_words, number, values) in enumerate(lines):
            kind = number % len(MARKERS)
            for share, record in values:
                passed = record.outcome == "pass"
                ink = f"type{kind}" if passed else "fail" if record.outcome == "fail" else "inconclusive"
                beyond = "<" if share < _SHARE_MIN else ">" if share > _SHARE_MAX else ""
                axes.plot(
                    [_held(share)], [place], marker=beyond or MARKERS[kind], markersize=5, alpha=0.8,
                    color=INKS[ink], markerfacecolor=INKS[ink if passed else "page"],
                    markeredgewidth=0.8 if passed else 1.8,
                )  # fmt: skip
            worst_share, worst = least[place]
            axes.annotate(
                worst.requirement, (_held(worst_share), place), (-_NAME_GAP_PT, 0), fontsize=_NAME_PT,
                textcoords="offset points", ha="right", va="center",
            )  # fmt: skip
            if worst_share < _SHARE_MIN:
                axes.annotate(
                    share_label(worst_share), (_SHARE_MIN, place), (_NAME_GAP_PT, 0), fontsize=_NAME_PT,
                    textcoords="offset points", ha="left", va="center",
                )  # fmt: skip
        axes.axvline(0, color=INKS["ink"], linewidth=1.4)
        axes.set_xlim(_left(least, width_in * 72 - _WORDS_PT), _RIGHT)
        axes.xaxis.set_major_formatter(share_label)
        axes.set_yticks(range(len(lines)), [words for words, _number, _values in lines])
        axes.tick_params(axis="y", labelsize=8.5, length=0)
        axes.set_ylim(len(lines) - 0.4, -0.6)
        axes.set_xlabel("share of the limit left after U (at the upright line: none)")
        axes.grid(axis="x")
        axes.set_axisbelow(True)
        figure.legend(
            handles=_handles(reports), loc="outside upper left", ncols=round(width_in / 2), fontsize=8.5
        )
        count = sum(len(values) for _words, _number, values in lines)
        least_percent = 100 * min(share for share, _record in least)
        return to_svg(
            figure, name, "Margins of all values",
            f"{count} values; the least margin is {least_percent:.3g} % of its limit.",
        )  # fmt: skip


def _lines(reports: Sequence[Report]) -> list[Line]:
    """Return a line for each quantity, target and, of several, network stack, in the order of the records."""
    found: dict[str, dict[tuple[int, str], list[tuple[float, Measurement]]]] = {}
    for number, report in enumerate(reports):
        for record in report.records:
            share = relative_margin(record)
            if share is not None:
                stack = record.subject.stack if report.has_stacks else None
                found.setdefault(record.quantity, {}).setdefault((number, stack or ""), []).append(
                    (share, record)
                )
    return [
        (
            " \u00b7 ".join(
                filter(None, (_words(quantity), reports[number].target if len(reports) > 1 else "", stack))
            ),
            number,
            values,
        )
        for quantity, of_targets in found.items()
        for (number, stack), values in sorted(of_targets.items(), key=lambda pair: pair[0][0])
    ]


def _left(least: Sequence[tuple[float, Measurement]], axis_pt: float) -> float:
    """Return where the axis begins: left of none left, and of the name at the least value of each line."""
    begins = [-0.14]
    for share, record in least:
        name = (0.65 * _NAME_PT * len(record.requirement) + 2 * _NAME_GAP_PT) / axis_pt
        begins.append((_held(share) - name * _RIGHT) / (1 - name))
    return min(begins)


def _held(share: float) -> float:
    return min(max(share, _SHARE_MIN), _SHARE_MAX)


def _words(quantity: str) -> str:
    return quantity.replace("_", " ")


def _handles(reports: Sequence[Report]) -> list[Line2D]:
    shown = [
        (MARKERS[number % len(MARKERS)], f"type{number % len(MARKERS)}", True, report.target or "pass")
        for number, report in enumerate(reports)
    ]
    shown += [
        ("o", outcome, False, outcome)
        for outcome in ("fail", "inconclusive")
        if any(report.counts.get(outcome) for report in reports)
    ]
    return [
        Line2D(
            [], [], linestyle="none", marker=marker, markersize=5, color=INKS[ink], label=words,
            markerfacecolor=INKS[ink if filled else "page"],
        )
        for marker, ink, filled, words in shown
    ]  # fmt: skip
