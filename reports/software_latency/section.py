# SPDX-License-Identifier: Apache-2.0
"""The section on software latency: every device's own, the round trips, and the sums that have to agree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reports.errors import ReportError
from reports.record.measurement import Measurement
from reports.section import PrintFigure, Section, TargetData, TargetView
from reports.software_latency.capability import CLOSURE, QUANTITY
from reports.software_latency.estimate import SoftwareLatency
from reports.software_latency.evidence import (
    FOLDER,
    SoftwareLatencies,
    folders_of_sizes,
    load_software_latencies,
)
from reports.software_latency.plots import figure_quantiles, pair_quantiles

PAPER_DELAY_NS = 2_000_000
PAPER_BEFORE_NS, PAPER_AFTER_NS = (1_599_130, 1_585_960, 1_604_775), (1_602_646, 1_580_520, 3_724_501)
"""Puttnies et al., (13) and (14): of one way, of three devices; the delay is in the last one's."""
QUANTILES_CAPTION = (
    "Round trips of each direction, all of them measured: the middle 98 %, the median, and what one in a"
    " thousand exceeds. Of S itself three cumulants are known, and no density is drawn: it would be a model."
)


@dataclass(frozen=True)
class RoundTripMatrix:
    """Mean round trips of one size by who asks and who sends back.

    Attributes:
        askers: In the order of their measurement.
        reflectors: Those that asked first, in their order.
        means_ns: Of each direction; of one that was measured again the last.
    """

    askers: tuple[str, ...]
    reflectors: tuple[str, ...]
    means_ns: dict[tuple[str, str], float]


@dataclass(frozen=True, eq=False)
class OfSize:
    """What the section shows of one size."""

    found: SoftwareLatencies
    caption: str = QUANTILES_CAPTION

    @property
    def paper_errors_ns(self) -> tuple[int, ...]:
        """Return by how much the paper's devices changed besides the delay, of one way."""
        put_ns = (0, 0, PAPER_DELAY_NS)
        every = zip(PAPER_AFTER_NS, PAPER_BEFORE_NS, put_ns, strict=True)
        return tuple(after - before - put for after, before, put in every)

    @property
    def matrix(self) -> RoundTripMatrix:
        """Return the mean round trips."""
        measured = self.found.estimate.measured
        askers = tuple(dict.fromkeys(each.asker for each in measured))
        others = [each.reflector for each in measured]
        reflectors = tuple(dict.fromkeys([*(name for name in askers if name in others), *others]))
        means_ns = {(each.asker, each.reflector): float(each.cumulants[0]) for each in measured}
        return RoundTripMatrix(askers, reflectors, means_ns)

    @property
    def figure(self) -> str:
        """Return the figure of round trips, those of twins left out; empty: there is none to draw."""
        twins = {name for each in self.found.facts.injected for name in each.waiting}
        trips = [each for each in self.found.trips if not twins & {each.asker, each.reflector}]
        try:
            name = f"software-latency-{self.found.facts.size_bytes}"
            return figure_quantiles(name, [pair_quantiles(each) for each in trips])
        except ReportError:
            return ""


@dataclass(frozen=True)
class DeviceBySize:
    """S of one kind of device at each size.

    Attributes:
        devices: Their names.
        kind: Hardware and software.
        latencies: One a size, in their order; None: not told there.
    """

    devices: tuple[str, ...]
    kind: tuple[str, str]
    sizes_bytes: tuple[int, ...]
    latencies: tuple[SoftwareLatency | None, ...]

    @property
    def slope(self) -> tuple[float, float] | None:
        """Return by how much S grows, from the smallest to the largest size, and its U, in ns a byte.

        U is the sum of both ends', so that it holds whatever they have in common. None: told at one size.
        """
        told = [
            (size, each)
            for size, each in zip(self.sizes_bytes, self.latencies, strict=True)
            if each is not None
        ]
        if len(told) < 2:
            return None
        (low_bytes, low), (high_bytes, high) = (end(told, key=lambda each: each[0]) for end in (min, max))
        apart_bytes = high_bytes - low_bytes
        return (high.mean_ns - low.mean_ns) / apart_bytes, (high.mean_u_ns + low.mean_u_ns) / apart_bytes


@dataclass(frozen=True)
class SoftwareSection(TargetView):
    """What the section shows.

    Attributes:
        sizes: What the round trips of each size tell.
        problems: Why those of a size could not be read.
    """

    judged: tuple[Measurement, ...]
    sizes: tuple[OfSize, ...]
    problems: tuple[str, ...] = ()

    @property
    def records(self) -> Sequence[Measurement]:
        """Return the records that it shows."""
        return self.judged

    @property
    def print_figures(self) -> Iterable[PrintFigure]:
        """Return the figure of the first size."""
        figures = [each.figure for each in self.sizes[:1]]
        return [PrintFigure(each, QUANTILES_CAPTION, "half") for each in figures if each]

    @property
    def by_size(self) -> tuple[DeviceBySize, ...]:
        """Return every kind of device at each size; twins, which one size has, left out."""
        found = [each.found for each in self.sizes]
        sizes_bytes = tuple(each.facts.size_bytes for each in found)
        of_size = [{one.kind: one for one in each.estimate.latencies} for each in found]
        twins = {name for each in found for one in each.facts.injected for name in one.waiting}
        names = {kind: one.devices for own in of_size for kind, one in own.items()}
        return tuple(
            DeviceBySize(devices, kind, sizes_bytes, tuple(own.get(kind) for own in of_size))
            for kind, devices in names.items()
            if not twins & set(devices)
        )


def gather_software_latency(measured: TargetData) -> SoftwareSection | None:
    """Return the section of a target; None: nothing was measured."""
    folders = folders_of_sizes(measured.evidence(FOLDER))
    judged = tuple(each for each in measured.records if each.quantity in (QUANTITY, CLOSURE))
    if not judged and not folders:
        return None
    sizes: list[OfSize] = []
    problems: list[str] = []
    for folder in folders or [measured.evidence(FOLDER)]:
        try:
            sizes.append(OfSize(measured.once(load_software_latencies, folder)))
        except ReportError as error:
            problems.append(str(error))
    return SoftwareSection(judged, tuple(sizes), tuple(problems))


SECTION = Section(
    (("software-latency", "Software latency"),), "software_latency/section.html.j2", gather_software_latency
)
