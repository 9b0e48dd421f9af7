# SPDX-License-Identifier: Apache-2.0
"""The dossier's figures of limits: what each value and its uncertainty take of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from reports.curves import share_label, time_axis
from reports.daq_replay.plots import MAX_LABELLED_STREAMS
from reports.dossier.figure import LATENCY, UPRIGHT_IN, printed, shown_attempt
from reports.dossier.model import Result, Target
from reports.natural_order import natural
from reports.section import PrintFigure
from reports.svg import INKS, new_figure, style, to_svg
from reports.units import MINUS

BARS_MAX = 30
_SHARE_MAX = 1.6

_MARKS: dict[str, tuple[str, str]] = {
    "pass": ("o", "type0"),
    "fail": ("X", "fail"),
    "inconclusive": ("D", "inconclusive"),
    "untested on hardware": ("o", "type0"),
    "untested": ("D", "inconclusive"),
}
_WORDS: dict[str, str] = {"fail": "FAIL", "inconclusive": "INC."}


def limit_figures(target: Target, name: str) -> list[PrintFigure]:
    """Draw streams against their budgets, and everything else as a share of its limit."""
    groups: dict[str, list[Result]] = {}
    others: list[tuple[str, Result]] = []
    for row in target.requirements:
        for result in row.results:
            record = shown_attempt(result).record
            upper = record.limit.upper
            if record.value is None or not upper or upper <= 0:
                continue
            if result.quantity == LATENCY and record.subject.stream and record.value > 0:
                words = [record.subject.stack, record.subject.clock, result.conditions]
                groups.setdefault(", ".join(word for word in words if word), []).append(result)
            else:
                others.append((row.id, result))
    figures: list[PrintFigure] = []
    for number, (title, results) in enumerate(groups.items()):
        results.sort(key=_stream_order)
        for part, start in enumerate(range(0, len(results), MAX_LABELLED_STREAMS)):
            some = results[start : start + MAX_LABELLED_STREAMS]
            svg = figure_budgets(f"{name}-budget{number}-{part}", some)
            figures.append(
                PrintFigure(
                    printed(svg, ""),
                    f"Largest latency (received {MINUS} scheduled) of each stream against its budget; "
                    f"{title}. Below: the share of the budget that the largest latency takes (filled) and "
                    "that its uncertainty U takes besides (open); a stream passes where both end at or under "
                    "100 %.",
                    size="whole",
                )
            )
    for part, start in enumerate(range(0, len(others), BARS_MAX)):
        svg = figure_shares(f"{name}-share{part}", others[start : start + BARS_MAX])
        figures.append(
            PrintFigure(
                printed(svg, ""),
                "Share of its limit that each value takes (filled) and that its uncertainty U takes besides "
                "(open); a value passes where both end at or under 100 %. Of limits on both sides the value "
                "without its sign is held against the upper one.",
                size="whole",
            )
        )
    return figures


def _stream_order(result: Result) -> tuple[tuple[int, str], ...]:
    return natural(shown_attempt(result).record.subject.stream or "")


def figure_budgets(name: str, results: Sequence[Result]) -> str:
    """Draw the largest latency of each stream with its budget, and below both value and U as its shares."""
    with style(name):
        figure = new_figure(UPRIGHT_IN, 4.6)
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        lows: list[float] = []
        highs: list[float] = []
        for place, result in enumerate(results):
            record = shown_attempt(result).record
            assert record.value is not None
            assert record.limit.upper is not None
            value, u, budget = record.value, record.uncertainty.expanded, record.limit.upper
            marker, ink = _MARKS[result.status]
            upper.hlines(budget, place - 0.42, place + 0.42, color=INKS["ink"], linewidth=2.2, zorder=3)
            upper.vlines(place, value, value + u, color=INKS["ink"], linewidth=1.2, zorder=4)
            upper.plot([place], [value], marker=marker, markersize=5, color=INKS[ink], zorder=5)
            low = _lowest(result, float(value))
            upper.vlines(place, low, value, color=INKS["muted"], linewidth=0.8, zorder=2)
            lows.append(low)
            highs.append(float(max(budget, value + u)))
            _bar(lower, place, float(value) / float(budget), float(u) / float(budget), ink, upright=True)
            if word := _WORDS.get(result.status):
                upper.text(
                    place, max(highs[-1], 1) * 1.2, word, rotation=90, ha="center", va="bottom", fontsize=7,
                    color=INKS[ink], weight="bold",
                )  # fmt: skip
        upper.set_yscale("log")
        upper.set_ylim(min(lows) * 0.6, max(highs) * 3)
        time_axis(upper.yaxis, minor=True)
        upper.set_ylabel("latency")
        upper.grid(axis="y")
        top = max(1.1, *(_ends(result) for result in results))
        lower.set_ylim(0, min(top * 1.05, _SHARE_MAX))
        lower.axhline(1, color=INKS["ink"], linewidth=1.2)
        lower.yaxis.set_major_formatter(share_label)
        lower.set_ylabel("share of budget")
        lower.grid(axis="y")
        for axes in (upper, lower):
            axes.set_axisbelow(True)
        streams = [shown_attempt(result).record.subject.stream for result in results]
        lower.set_xlim(-1, len(results))
        lower.set_xticks(range(len(results)), streams)
        lower.tick_params(axis="x", labelrotation=90, labelsize=7, length=2)
        lower.set_xlabel("stream (producer number, then message type)")
        figure.legend(handles=_budget_handles(results), loc="outside upper left", ncols=6, fontsize=8.5)
        return to_svg(figure, name, "Largest latency of each stream against its budget", _said(results))


def _lowest(result: Result, value: float) -> float:
    """Return the median where the evidence has one, else the value itself; on a logarithmic axis above 0."""
    found = result.distribution
    medians = [float(one.value) for one in found.percentiles if one.share == 0.5] if found else []
    return max(min([*medians, value]), value / 1e4)


def _ends(result: Result) -> float:
    record = shown_attempt(result).record
    assert record.value is not None
    assert record.limit.upper is not None
    return (abs(float(record.value)) + float(record.uncertainty.expanded)) / float(record.limit.upper)


def _bar(axes: Any, place: int, share: float, u_share: float, ink: str, *, upright: bool) -> None:
    """Draw a share and what U adds to it; what lies beyond the axis is cut off by it."""
    draw = axes.bar if upright else axes.barh
    start = "bottom" if upright else "left"
    options: dict[str, Any] = {"color": INKS[ink], "linewidth": 0}
    draw([place], [share], 0.62, **options)
    edge = {"color": INKS["page"], "edgecolor": INKS["ink"], "linewidth": 0.6, start: [share]}
    draw([place], [u_share], 0.62, **edge)


def _budget_handles(results: Sequence[Result]) -> list[Any]:
    statuses = list(dict.fromkeys(result.status for result in results))
    handles: list[Any] = [
        Line2D([], [], linestyle="none", marker=_MARKS[status][0], color=INKS[_MARKS[status][1]],
               label=f"largest latency: {status}")
        for status in statuses
    ]  # fmt: skip
    handles.append(Line2D([], [], color=INKS["ink"], linewidth=2.2, label="budget"))
    if any(result.distribution for result in results):
        handles.append(Line2D([], [], color=INKS["muted"], linewidth=0.8, label="from the median"))
    handles.append(Patch(facecolor=INKS["page"], edgecolor=INKS["ink"], linewidth=0.6, label="U"))
    return handles


def figure_shares(name: str, results: Sequence[tuple[str, Result]]) -> str:
    """Draw values and their U as shares of their limits, one line each; requirement and result."""
    with style(name):
        figure = new_figure(UPRIGHT_IN, 0.95 + 0.185 * len(results))
        axes = figure.add_subplot()
        for place, (_, result) in enumerate(results):
            record = shown_attempt(result).record
            assert record.value is not None
            assert record.limit.upper is not None
            share = abs(float(record.value)) / float(record.limit.upper)
            u_share = float(record.uncertainty.expanded) / float(record.limit.upper)
            _bar(axes, place, share, u_share, _MARKS[result.status][1], upright=False)
        top = max(1.1, *(_ends(result) for _, result in results))
        axes.set_xlim(0, min(top * 1.05, _SHARE_MAX))
        axes.axvline(1, color=INKS["ink"], linewidth=1.2)
        axes.xaxis.set_major_formatter(share_label)
        axes.set_yticks(range(len(results)), [_label(*each) for each in results])
        axes.tick_params(axis="y", labelsize=8, length=0)
        axes.set_ylim(len(results) - 0.4, -0.6)
        axes.set_xlabel("share of the limit")
        axes.grid(axis="x")
        axes.set_axisbelow(True)
        return to_svg(
            figure, name, "Values as shares of their limits", _said([result for _, result in results])
        )


def _label(requirement: str, result: Result) -> str:
    record = shown_attempt(result).record
    subject = [record.subject.stack, *(value for _axis, value in record.subject.of)]
    conditions = record.conditions
    words = [result.quantity.replace("_", " "), *subject, conditions.phase, conditions.numbers_text]
    mark = f"  {_WORDS[result.status]}" if result.status in _WORDS else ""
    return f"{requirement}: {', '.join(word for word in words if word)}{mark}"


def _said(results: Sequence[Result]) -> str:
    worst = max(results, key=_ends)
    return f"{len(results)} values; the largest share, with U, is {share_label(_ends(worst))}."
