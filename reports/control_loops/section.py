# SPDX-License-Identifier: Apache-2.0
"""The section on control loops: the ring and its stretches, the camera and its tracker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from reports.causes.suspects import Finding
from reports.control_loops.camera_evidence import CAMERA_FILE, CAMERA_FOLDER
from reports.control_loops.camera_loop import (
    COMMANDS,
    PICTURES,
    TRACKER,
    CameraLoop,
    load_camera_loop,
)
from reports.control_loops.camera_plots import figure_pictures, figure_slope
from reports.control_loops.camera_verdict import witnesses_en
from reports.control_loops.capability import CAPABILITY, WHOLE
from reports.control_loops.case import Case, case_of_folder
from reports.control_loops.clock import ClockCourse, clock_course
from reports.control_loops.clock_plot import figure_clock
from reports.control_loops.load import AchievedLoad
from reports.control_loops.loop import Stretch
from reports.control_loops.ring import Ring, load_ring
from reports.control_loops.ring_activities import KERNEL_RING
from reports.control_loops.ring_evidence import (
    FOLDER,
    HOLD_FOLDER,
    NAGLE_FOLDER,
    RING_FILE,
)
from reports.control_loops.ring_plots import figure_stretches, figure_whole
from reports.control_loops.ring_queue import ring_queue
from reports.control_loops.ring_suspects import ring_suspects
from reports.control_loops.ring_verdict import FoundHold, found_hold
from reports.control_loops.stretch_verdict import stretch_uncertainty
from reports.control_loops.sweep import SweepRow, sweep_rows
from reports.control_loops.warm_up import UNSETTLED
from reports.control_loops.worst import WorstMoment, worst_of_all
from reports.control_loops.worst_plot import caption_of, figure_worst
from reports.errors import ReportError
from reports.record.measurement import Measurement
from reports.section import PrintFigure, Section, TargetData, TargetView
from reports.timeline.clock_record import Times
from reports.timeline.leg import quantile_ns
from reports.timeline.recorded_end import RecordedEnd
from reports.timeline.verdict import contradiction_text

PARTS = PICTURES, TRACKER, COMMANDS
WHOLE_CAPTION = (
    "Each message round the whole ring, by the one counter of source and sink. Right: how often each time"
    " came. The slowest one in a hundred may lie above."
)
PICTURES_CAPTION = (
    "Each picture with a command, by events; grey crosses: by the pictures themselves, from when the target"
    " was where the command says to look, to when the motor was told."
)
SLOPE_CAPTION = (
    "Against the delay that captures on both sides of the router show; lines: slopes of 2 and 1. Hollow:"
    " beside a load."
)
CLOCK_CAPTION = (
    "The target's clock against the bench's reference, less its median; where nothing corrects it less its"
    " line. The paper's corrections are within 10 µs, beside a build within 20 (4.2.1, 4.3.2.2)."
)
STRETCHES_CAPTION = "Each stretch of the ring: median, and from 1 to 99 % of the messages."


@dataclass(frozen=True, eq=False)
class StretchRow:
    """What the table shows of a stretch, in ns; of the wire None where no kernel has stamped."""

    stretch: Stretch
    between: str
    median_ns: int
    u_ns: float
    mean_ns: float
    p99_ns: int
    wire_ns: int | None
    missing: int


@dataclass(frozen=True, eq=False)
class ControlLoopsSection(TargetView):
    """What the section shows.

    Attributes:
        ring: None: the evidence could not be read.
        held: What a node's hold came to on each stretch; empty: no node held messages.
        nagle: A ring whose small writes wait; None: there is none.
        loaded: Rings beside a load, or while the target's clock is corrected.
        clocks: What the target's clock did during each ring, with the median of the whole in ns.
        camera_clocks: Likewise of loops of a camera, at the first delay; empty: nothing corrected it.
        loops: Of camera and tracker, idle first, the least delay first.
        problems: Why.
        worst: The worst moment of all loops of a camera, and of which; None: no pictures of it.
        causes: Who had the time of late messages of rings whose target's kernel was recorded; None: no
            message was late.
    """

    judged: tuple[Measurement, ...]
    ring: Ring | None
    held: tuple[FoundHold, ...] = ()
    nagle: Ring | None = None
    loaded: tuple[Ring, ...] = ()
    clocks: tuple[tuple[ClockCourse, int], ...] = ()
    camera_clocks: tuple[tuple[ClockCourse, int], ...] = ()
    loops: tuple[tuple[Case, CameraLoop], ...] = ()
    problems: tuple[str, ...] = ()
    worst: tuple[Case, WorstMoment] | None = None
    causes: tuple[tuple[Case, Finding | None], ...] = ()

    @property
    def records(self) -> Sequence[Measurement]:
        """Return the records that it shows."""
        return self.judged

    @property
    def rows(self) -> list[StretchRow]:
        """Return the stretches that have a message."""
        return _rows(self.ring) if self.ring else []

    @property
    def nagle_rows(self) -> list[StretchRow]:
        """Return those of the ring whose small writes wait."""
        return _rows(self.nagle) if self.nagle else []

    @property
    def loaded_rows(self) -> list[tuple[AchievedLoad, list[StretchRow]]]:
        """Return those of rings beside a load, each with what the load came to."""
        free = [each for each in self.loaded if not each.facts.clock]
        return [(each.load, rows) for each in free if each.load and (rows := _rows(each))]

    @property
    def loads(self) -> list[tuple[Case, AchievedLoad]]:
        """Return the loads beside camera and tracker."""
        return [(case, found.load) for case, found in self.loops if found.load]

    @property
    def camera_rows(self) -> list[CameraRow]:
        """Return the loops of camera and tracker that have a picture, by load and delay."""
        return [_camera_row(case, found) for case, found in self.loops if len(found.whole)]

    @property
    def wire_rows(self) -> list[WireRow]:
        """Return what captures show of the pictures, by delay."""
        return [row for case, found in self.loops if (row := _wire_row(case, found)) is not None]

    @property
    def sweep_rows(self) -> list[SweepRow]:
        """Return mean and variance against the delay of the path, idle and beside each load."""
        return [row for _, loops in self._by_load() for row in sweep_rows([found for _, found in loops])]

    def _by_load(self) -> list[tuple[str, list[tuple[Case, CameraLoop]]]]:
        """Return the loops that have a picture by their load, idle first; of no clock that is corrected."""
        found = [each for each in self.loops if len(each[1].whole) and not each[0].clock]
        loads = dict.fromkeys(case.load for case, _ in found)
        return [(load, [each for each in found if each[0].load == load]) for load in loads]

    @property
    def machines(self) -> int:
        """Return how many machines the ring has."""
        return len({each.node for each in self.ring.facts.ends}) if self.ring else 0

    @property
    def contradiction(self) -> str:
        """Return the worst contradiction in words; empty: there is none."""
        causes = self.ring.causality if self.ring else None
        return contradiction_text(causes) if causes and causes.contradictions else ""

    @property
    def queues(self) -> list[str]:
        """Return what is to be said of rings whose messages wait for one another."""
        named = [("", self.ring), ("with Nagle's algorithm", self.nagle)]
        named += [(_case_of(each).words, each) for each in self.loaded]
        found = [(words, ring_queue(each).words) for words, each in named if each is not None]
        return [
            f"The ring {words}: {said}." if words else f"The ring: {said}." for words, said in found if said
        ]

    @property
    def figures(self) -> list[tuple[str, str]]:
        """Return figures with their captions."""
        return list(self._drawn())

    @property
    def print_figures(self) -> Iterable[PrintFigure]:
        """Return the figure of the whole."""
        return [PrintFigure(svg, caption, "wide") for svg, caption in islice(self._drawn(), 1)]

    def _drawn(self) -> Iterator[tuple[str, str]]:
        """Draw one figure after the other."""
        if self.ring is not None and len(self.ring.whole):
            yield figure_whole("loops-whole", self.ring), WHOLE_CAPTION
            yield figure_stretches("loops-stretches", self.ring), STRETCHES_CAPTION
        if len(self.clocks) > 1:
            yield figure_clock("loops-clock", [course for course, _ in self.clocks]), CLOCK_CAPTION
        if self.camera_clocks:
            yield figure_clock("loops-camera-clock", [each for each, _ in self.camera_clocks]), CLOCK_CAPTION
        for load, loops in self._by_load():
            name = f"loops-pictures-{load}" if load else "loops-pictures"
            yield figure_pictures(name, loops), PICTURES_CAPTION
        sweeps = [
            [found for _, found in loops if found.facts.delay and len(found.pictures)]
            for _, loops in self._by_load()
        ]
        if sweeps and len(sweeps[0]) > 1:
            yield figure_slope("loops-slope", sweeps), SLOPE_CAPTION
        if sweeps and self.worst is not None:
            yield figure_worst("loops-worst", self.worst[1]), caption_of(*self.worst)


def _case_of(ring: Ring) -> Case:
    load = ring.facts.load
    return Case(load=load.kind if load else "", clock=ring.facts.clock or "")


def _rows(ring: Ring) -> list[StretchRow]:
    wire = {each.name: each for each in ring.wire_stretches if len(each)}
    return [
        StretchRow(
            each,
            _between(ring, each.name),
            quantile_ns(each.time_ns, 0.5),
            stretch_uncertainty(each, "median").expanded,
            float(np.mean(each.time_ns)),
            quantile_ns(each.time_ns, 0.99),
            quantile_ns(wire[each.name].time_ns, 0.5) if each.name in wire else None,
            ring.missing(each),
        )
        for each in ring.stretches
        if len(each)
    ]


def _between(ring: Ring, name: str) -> str:
    """Return in words between which machines a stretch lies."""
    kind, _, place = name.partition(" ")
    ends = [each.node for each in ring.facts.ends]
    if name == WHOLE:
        return ends[0]
    at = int(place)
    return f"{ends[at - 1]} → {ends[at]}" if kind == "hop" else ends[at]


@dataclass(frozen=True, eq=False)
class CameraRow:
    """What the table shows of a loop at a delay of its path; times in ns.

    Attributes:
        difference_ns: By how much the pictures themselves say more.
        en: E_n of both witnesses; NaN: one says nothing.
    """

    case: Case
    found: CameraLoop
    medians_ns: tuple[int | None, ...]
    mean_ns: float
    deviation_ns: float
    most_ns: int
    difference_ns: int
    pixels_u_ns: int
    en: float
    out_percent: float
    without: str


@dataclass(frozen=True)
class WireRow:
    """What the table shows of pictures on the wire at a delay of the path; times in ns."""

    case: Case
    datagrams: int
    mean_ns: float
    deviation_ns: float
    first_to_last_ns: int
    waiting_ns: int
    ratio: float


def _wire_row(case: Case, found: CameraLoop) -> WireRow | None:
    wire = found.wire
    if wire is None or not wire.inside_ns.size or not found.waiting_ns.size or not len(found.pictures):
        return None
    mean_ns = float(np.mean(wire.inside_ns))
    return WireRow(
        case,
        wire.inside_ns.size,
        mean_ns,
        float(np.std(wire.inside_ns)),
        quantile_ns(wire.first_to_last_ns, 0.5),
        quantile_ns(found.waiting_ns, 0.5),
        float(np.mean(found.pictures.time_ns)) / mean_ns if mean_ns else float("nan"),
    )


def _camera_row(case: Case, found: CameraLoop) -> CameraRow:
    every = [found.whole, *(each for each in found.stretches if each.name in PARTS)]
    medians = tuple(quantile_ns(each.time_ns, 0.5) if len(each) else None for each in every)
    en, difference_ns, u_ns, _ = witnesses_en(found)
    times_ns = found.whole.time_ns
    return CameraRow(
        case,
        found,
        medians,
        float(np.mean(times_ns)),
        float(np.std(times_ns)),
        int(times_ns.max()),
        difference_ns,
        u_ns,
        en,
        100 * found.out_of_picture,
        "; ".join(
            [
                *(f"{count} {reason}" for reason, count in found.reasons.items()),
                *([UNSETTLED] if found.facts.unsettled else []),
            ]
        ),
    )


def gather_control_loops(measured: TargetData) -> ControlLoopsSection | None:
    """Return the section of a target; None: nothing was measured."""
    folder = measured.evidence(FOLDER)
    judged = tuple(each for each in measured.records if each.quantity in CAPABILITY.quantities)
    cases = _cases(folder / CAMERA_FOLDER, CAMERA_FILE)
    if not judged and not (folder / RING_FILE).exists() and not cases:
        return None
    problems: list[str] = []

    def read(place: Path) -> Ring | None:
        try:
            return measured.once(load_ring, place)
        except ReportError as error:
            problems.append(str(error))
            return None

    ring = read(folder) if (folder / RING_FILE).exists() or not cases else None
    held: tuple[FoundHold, ...] = ()
    if (folder / HOLD_FOLDER / RING_FILE).exists() and (holding := read(folder / HOLD_FOLDER)):
        try:
            held = tuple(found_hold(holding))
        except ReportError as error:
            problems.append(str(error))
    has_nagle = (folder / NAGLE_FOLDER / RING_FILE).exists()
    nagle = read(folder / NAGLE_FOLDER) if has_nagle else None
    loaded = {case: read(folder / case.folder) for case in _cases(folder, RING_FILE)}
    rings = {case: each for case, each in ({Case(): ring} | loaded).items() if each is not None}
    clocks = _courses(
        (folder / case.folder, case, each.facts.ends[0], each.whole_own_ns) for case, each in rings.items()
    )
    loops: list[tuple[Case, CameraLoop]] = []
    for case in cases:
        place = folder / CAMERA_FOLDER / case.folder
        try:
            loops.append((case, measured.once(load_camera_loop, place)))
        except ReportError as error:
            problems.append(f"{place.name}: {error}")
    placed = [(case, folder / CAMERA_FOLDER / case.folder, found) for case, found in loops]
    worst = worst_of_all(placed, problems)
    causes = tuple(_causes(folder, rings, problems))
    return ControlLoopsSection(
        judged,
        ring,
        held,
        nagle,
        tuple(each for case, each in rings.items() if case != Case()),
        clocks,
        _camera_courses(placed),
        tuple(loops),
        tuple(problems),
        worst,
        causes,
    )


def _causes(
    folder: Path, rings: Mapping[Case, Ring], problems: list[str]
) -> Iterator[tuple[Case, Finding | None]]:
    """Give who had the time of late messages, of each ring whose target's kernel was recorded."""
    for case, ring in rings.items():
        if (folder / case.folder / KERNEL_RING).exists() and len(ring.whole):
            try:
                yield case, ring_suspects(ring, folder / case.folder)
            except ReportError as error:
                problems.append(f"{case.words}: {error}" if case.words else str(error))


def _courses(of: Iterable[tuple[Path, Case, RecordedEnd, Times]]) -> tuple[tuple[ClockCourse, int], ...]:
    """Return what the target's clock did during each loop that has a whole, with the whole's median in ns."""
    found = (
        (clock_course(folder, case, source), whole_ns)
        for folder, case, source, whole_ns in of
        if len(whole_ns)
    )
    return tuple((course, quantile_ns(whole_ns, 0.5)) for course, whole_ns in found if course is not None)


def _camera_courses(
    placed: Sequence[tuple[Case, Path, CameraLoop]],
) -> tuple[tuple[ClockCourse, int], ...]:
    """Return those of loops of a camera, at the delay at which a clock is corrected; empty: none is."""
    corrected = [(case.delay_ms, found.facts.clock_node) for case, _, found in placed if case.clock]
    if not corrected:
        return ()
    delay_ms, node = corrected[0]
    return _courses(
        (folder, case, end, found.whole.time_ns)
        for case, folder, found in placed
        for end in found.facts.ends[:2]
        if case.delay_ms == delay_ms and end.node == node
    )


def _cases(folder: Path, file: str) -> list[Case]:
    """Return the cases that folders with a file tell by their names, idle first, the least delay first."""
    found = (case_of_folder(place.parent.name) for place in folder.glob(f"*/{file}"))
    return sorted(
        (each for each in found if each is not None), key=lambda each: (each.clock, each.load, each.delay_us)
    )


SECTION = Section(
    (("control-loops", "Control loops"),), "control_loops/section.html.j2", gather_control_loops
)
