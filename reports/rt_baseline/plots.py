# SPDX-License-Identifier: Apache-2.0
"""The figure of wake-ups as OSADL draws it: of each CPU a histogram, counts on a logarithmic axis.

OSADL's latency axis ends at 400 µs and is linear. Wake-ups of a shared machine reach milliseconds: it is
logarithmic here.
"""

from __future__ import annotations

from matplotlib.ticker import FuncFormatter

from reports.curves import DASHES, time_axis
from reports.rt_baseline.evidence import Wakeups
from reports.svg import INKS, new_figure, style, to_svg
from reports.units import format_value

INKS_OF_CPUS = ("type0", "type1", "type2", "type3")
NAMED_CPUS_MAX = 8
"""More would leave the legend no room; each is drawn."""


def figure_wakeups(name: str, found: Wakeups) -> str:
    """Draw how many wake-ups had each latency, one line a CPU.

    Args:
        name: Short name, unique on the page.
        found: Of one CPU at least.
    """
    with style(name):
        figure = new_figure(11.6, 3.4)
        axes = figure.add_subplot()
        for place, cpu in enumerate(found.run.cpus):
            at_ns, counts = _steps(cpu.counts)
            axes.plot(
                at_ns, counts, color=INKS[INKS_OF_CPUS[place % len(INKS_OF_CPUS)]],
                linestyle=DASHES[place // len(INKS_OF_CPUS) % len(DASHES)], linewidth=1.1,
                drawstyle="steps-post",
                label=f"CPU {cpu.cpu}: max {format_value(cpu.max_us * 1000, 'ns')}"
                if place < NAMED_CPUS_MAX else None,
            )  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(bottom=0.7)
        highest_us = max(each.max_us for each in found.run.cpus)
        axes.set_xlim(1000, 1000 * max(100, 1.5 * highest_us))
        axes.yaxis.set_major_formatter(FuncFormatter(_count))
        axes.grid()
        axes.set_axisbelow(True)
        time_axis(axes.xaxis, minor=True)
        axes.set_xlabel(f"latency of a wake-up beside {found.beside}")
        axes.set_ylabel("wake-ups a microsecond")
        figure.legend(loc="outside upper left", ncols=4, fontsize=8.5)
        said = "; ".join(f"CPU {each.cpu} up to {each.max_us} µs" for each in found.run.cpus)
        return to_svg(figure, name, f"Wake-ups beside {found.beside}", f"{said}.")


def _count(value: float, _place: int) -> str:
    return f"{value:g}"


def _steps(counts: tuple[tuple[int, int], ...]) -> tuple[list[int], list[float]]:
    """Return where a line goes up and down, in ns, and to how many; 0 between latencies that nothing had."""
    at_ns: list[int] = []
    high: list[float] = []
    for us, count in counts:
        if not at_ns or at_ns[-1] != us * 1000:
            at_ns.append(max(1, us * 1000))
            high.append(count)
        else:
            high[-1] = count
        at_ns.append((us + 1) * 1000)
        high.append(0.1)
    return at_ns, high
