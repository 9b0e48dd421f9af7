# SPDX-License-Identifier: Apache-2.0
"""Figures of legs over a measurement, as a histogram, and of what exchanges say of a clock."""

from __future__ import annotations

import numpy as np

from reports.svg import INKS, new_figure, style, to_svg
from reports.timeline.clock_record import NS_PER_S, ClockRecord
from reports.timeline.leg import Leg, quantile_ns
from reports.timeline.legs import Legs
from reports.units import format_value

NS_PER_US = 1000
BINS = 80
SHOWN_SHARE = 0.99
"""The slowest messages would flatten all others: how many lie beyond is said."""
POINTS_MAX = 2000


def figure_legs(name: str, legs: Legs) -> str:
    """Draw both legs message by message with their U, and beside it how often each time came.

    Args:
        name: Short name, unique on the page.
        legs: Each of at least one message.
    """
    with style(name):
        figure = new_figure(11.6, 4.4)
        over_time, counts = figure.subplots(1, 2, width_ratios=[2, 1], sharey=True)
        begin_ns = min(int(leg.sent.tai_ns[0]) for leg in legs.legs)
        top_ns = max(quantile_ns(leg.time_ns, SHOWN_SHARE) for leg in legs.legs)
        low_ns = min(0, *(int(leg.time_ns.min()) for leg in legs.legs))
        edges_us = np.linspace(low_ns, top_ns, BINS + 1) / NS_PER_US
        for leg, ink in zip(legs.legs, ("type0", "type1"), strict=True):
            at, time_us, u_us = _thinned(leg, begin_ns)
            over_time.fill_between(at, time_us - u_us, time_us + u_us, color=INKS["band"], linewidth=0)
            over_time.plot(at, time_us, ".", color=INKS[ink], markersize=2, label=leg.name)
            counts.hist(
                leg.time_ns / NS_PER_US, bins=edges_us, orientation="horizontal", histtype="step",
                color=INKS[ink], linewidth=1.4,
            )  # fmt: skip
        over_time.set_ylim(edges_us[0], edges_us[-1] * 1.02)
        over_time.set_xlabel("s since the first message")
        over_time.set_ylabel("from program to program, µs")
        counts.set_xlabel("messages")
        figure.legend(loc="outside upper left", ncols=2, fontsize=8.5, markerscale=4)
        said = "; ".join(
            f"{leg.name}: median {format_value(quantile_ns(leg.time_ns, 0.5), 'ns')}" for leg in legs.legs
        )
        return to_svg(figure, name, "Both legs of each message", f"{said}.")


def _thinned(leg: Leg, begin_ns: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    step = -(-len(leg) // POINTS_MAX)
    at = (leg.sent.tai_ns[::step] - begin_ns) / NS_PER_S
    return at, leg.time_ns[::step] / NS_PER_US, leg.u_ns[::step] / NS_PER_US


def figure_clock(name: str, record: ClockRecord) -> str:
    """Draw what each reading says of a clock, less a line through all of them, and the reading's U.

    Args:
        name: Short name, unique on the page.
        record: At least two readings.
    """
    passed_ns = (record.tai_ns - record.tai_ns[0]).astype(np.float64)
    ahead_ns = (record.local_ns - record.local_ns[0] - (record.tai_ns - record.tai_ns[0])).astype(np.float64)
    from_mean_ns = passed_ns - passed_ns.mean()
    rate = float(from_mean_ns @ ahead_ns / (from_mean_ns @ from_mean_ns))
    off_us = (ahead_ns - ahead_ns.mean() - rate * from_mean_ns) / NS_PER_US
    with style(name):
        figure = new_figure(11.6, 2.6)
        axes = figure.add_subplot()
        u_us = record.u_ns / NS_PER_US
        axes.errorbar(
            passed_ns / NS_PER_S, off_us, yerr=u_us, fmt=".", color=INKS["type0"], ecolor=INKS["muted"],
            markersize=3, elinewidth=1,
        )  # fmt: skip
        axes.set_xlabel("s since the first reading")
        axes.set_ylabel("off its line, µs")
        return to_svg(
            figure,
            name,
            f"The clock of {record.node} against the reference",
            f"{len(record.tai_ns)} readings, rate {rate * 1e6:.3f} ppm, median U {np.median(u_us):.3g} µs.",
        )
