# SPDX-License-Identifier: Apache-2.0
"""Round trips between the devices of a bench: the evidence, and what is made of it.

The folder holds `round_trips.json` (this file's dataclasses), of each direction between two devices the
answer of `bw-traffic roundtrip` and its series, those of the echoes, and the witness's. Times are ns.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from reports.errors import RecordError, ReportError
from reports.record.codec import omit_none
from reports.record.document import read_document, write_document
from reports.software_latency.closure import Closure, closures
from reports.software_latency.estimate import Estimate, estimate
from reports.software_latency.icmp import IcmpEchoes, IcmpTimes, icmp_times
from reports.software_latency.injection import Change, changes
from reports.software_latency.plan import Device, told_devices
from reports.software_latency.trips import PairTrips
from reports.tools.answers import Reader, WitnessResult, last_result, witness_result
from reports.units import NS_PER_US

SCHEMA = "benchwright.round_trips/1"
FOLDER = "software_latency"
ROUND_TRIPS = "round_trips.json"
WITNESS = "witness.ndjson"
PPB = 1_000_000_000
COLUMNS_OF_BEFORE = (
    "sequence",
    "t1_local_tai_ns",
    "round_trip_ns",
    "residence_ns",
    "own_send_ns",
    "own_receive_ns",
)
COLUMNS = (*COLUMNS_OF_BEFORE, "known_delay_ns")


@dataclass(frozen=True)
class LabDevice:
    """A device of the bench whose software latency is asked for.

    Attributes:
        name: As requirements name it.
        node: Where its programs run.
        hardware: Devices of one hardware and one software have one distribution of latency.
        software: Likewise, with the scheduling of its echo.
        priority: SCHED_FIFO priority of its programs; 0: ordinary scheduling.
    """

    name: str
    node: str
    hardware: str
    software: str
    priority: int


@dataclass(frozen=True)
class DeviceClock:
    """A device's clock against the bench's reference clock, on which the witness stamps; positive: ahead."""

    device: str
    at_reference_tai_ns: int
    offset_ns: int
    rate_ppb: int
    bound_ns: int


@dataclass(frozen=True)
class HardwareBound:
    """By how much a cable or a switch may be off in the latency of a round trip; the same in every trip."""

    name: str
    ns: int


@dataclass(frozen=True)
class Exchange:
    """Round trips in one direction: who asks, who sends back, and the files of both."""

    asker: str
    reflector: str
    file: str
    series: str
    hardware_ns: int
    """Known latency of the hardware on both ways together, which is taken off."""
    hardware_bounds: tuple[HardwareBound, ...] | None = omit_none()
    """By how much it may be off; None: it is not known, the bench file has no topology."""
    silent: str | None = omit_none()
    """Why it has no trips, or next to none: it tells nothing; None: it has them."""


@dataclass(frozen=True)
class LabProducer:
    """A producer of the bench: what kind of device it is, and its way to the target.

    Attributes:
        number: As patterns have it.
        hardware: As that of a `LabDevice`.
        software: Of its programs, likewise.
        hardware_ns: Known latency of the hardware on both ways together, as of an `Exchange`.
        hardware_bounds: By how much it may be off; None: it is not known.
    """

    number: int
    hardware: str
    software: str
    hardware_ns: int
    hardware_bounds: tuple[HardwareBound, ...] | None = omit_none()


@dataclass(frozen=True)
class InjectedDelay:
    """A delay that was put into a device's software on purpose.

    Attributes:
        device: Its name: the delayed twin, where `twin_of` is given.
        receive_us: Asked for.
        send_us: Asked for.
        twin_of: The same device without the delay; "": there is none.
        put_ns: What both waits together took on average, by the device's own clock; 0: not known.
        control: Name of the twin that waits alike between its stamps, with which it is compared; None: it is
            compared with the device, as in runs of before.
    """

    device: str
    receive_us: int
    send_us: int
    twin_of: str = ""
    put_ns: int = 0
    control: str | None = omit_none()

    @property
    def waiting(self) -> frozenset[str]:
        """Return the names of the devices that wait by it: that which has the delay, and its control."""
        return frozenset(name for name in (self.device, self.control) if name is not None)

    @property
    def compared_with(self) -> str:
        """Return the name of what the delayed one is compared with."""
        return self.control or self.twin_of


@dataclass(frozen=True)
class Turns:
    """The grid on which the token goes round: direction i has its first turn i slots after the first one's.

    Attributes:
        first_tai_ns: Of the first direction, by the reference clock.
        trips: Of a turn.
        every_us: From one turn of a direction to its next.
        count: Turns of each direction.
    """

    first_tai_ns: int
    trips: int
    every_us: int
    count: int


@dataclass(frozen=True)
class RoundTrips:
    """What `round_trips.json` holds."""

    target: str
    size_bytes: int
    interval_us: int
    devices: tuple[LabDevice, ...]
    clocks: tuple[DeviceClock, ...]
    exchanges: tuple[Exchange, ...]
    injected: tuple[InjectedDelay, ...] = ()
    turns: Turns | None = None
    """None: one direction was measured after the other."""
    icmp: tuple[IcmpEchoes, ...] | None = omit_none()
    """By `ping`; None: none were made, as in runs of before."""
    producers: tuple[LabProducer, ...] | None = omit_none()
    """Those of the bench, measured or not; None: the run is older than the list."""
    hold_us: int | None = omit_none()
    """How long each echo slept before its reply; None: it replied at once, as in runs of before."""
    left_out_of_sums: tuple[str, ...] | None = omit_none()
    """In no sum that has to agree: the delayed twin, which has a check of its own. None: the run is older."""
    schema: str = SCHEMA


@dataclass(frozen=True, eq=False)
class SoftwareLatencies:
    """What the round trips of a folder tell.

    Attributes:
        facts: What was measured.
        trips: Of each direction that is not silent.
        silent: Devices that these do not tell, and why, by their name.
        lost: Requests without a reply.
        estimate: Software latency of each kind of device.
        closures: Sums that have to agree.
        changes: What the delayed twin changed at each device; empty where there was none, or one of the two
            is silent.
        icmp: Echoes by `ping` between two devices, asker first: two kernels without the programs.
    """

    facts: RoundTrips
    trips: tuple[PairTrips, ...]
    lost: int
    estimate: Estimate
    closures: tuple[Closure, ...]
    changes: tuple[Change, ...] = ()
    silent: Mapping[str, str] = field(default_factory=dict[str, str])
    icmp: Mapping[tuple[str, str], IcmpTimes] = field(default_factory=dict[tuple[str, str], IcmpTimes])

    @property
    def hardware(self) -> tuple[int, int] | None:
        """Least and most that was taken off a round trip for cables and switches, in ns; None: not known."""
        if any(each.hardware_bounds is None for each in self.facts.exchanges):
            return None
        taken = [each.hardware_ns for each in self.facts.exchanges]
        return min(taken), max(taken)


def write_round_trips(folder: Path, facts: RoundTrips) -> Path:
    """Write `round_trips.json` and return its path."""
    return write_document(folder / ROUND_TRIPS, facts)


def folder_of_size(folder: Path, size_bytes: int, sizes_bytes: Sequence[int]) -> Path:
    """Return where round trips of one size are below a target's folder: of the first size there itself."""
    return folder if size_bytes == sizes_bytes[0] else folder / str(size_bytes)


def folders_of_sizes(folder: Path) -> list[Path]:
    """Return the folders of a target that hold round trips: that of the first size, then by size."""
    further = sorted((path for path in folder.glob("*") if path.name.isdecimal()), key=lambda x: int(x.name))
    return [each for each in (folder, *further) if (each / ROUND_TRIPS).exists()]


def load_software_latencies(folder: Path) -> SoftwareLatencies:
    """Read a folder and work out every device's latency.

    Raises:
        RecordError: A file is missing or damaged; names it.
        ReportError: The pairs do not tell every device, or have too few trips that count.
    """
    facts = read_document(RoundTrips, folder / ROUND_TRIPS, SCHEMA)
    witness = folder / WITNESS
    pauses = witness_result(last_result(witness)) if witness.exists() else None
    clocks = {clock.device: clock for clock in facts.clocks}
    exchanges, devices, silent = _heard(facts)
    trips = tuple(read_trips(folder, each, clocks.get(each.asker), pauses, facts.turns) for each in exchanges)
    answers = [Reader(last_result(folder / each.file), each.file) for each in exchanges]
    lost = sum(answer.get("lost", int) for answer in answers)
    found = estimate(devices, trips)
    changed: tuple[Change, ...] = ()
    for each in facts.injected:
        if each.twin_of and each.put_ns and not {each.device, each.compared_with} & set(silent):
            asked_ns = (each.receive_us + each.send_us) * NS_PER_US
            changed += changes(found, devices, trips, each.device, each.compared_with, each.put_ns, asked_ns)
    sums = closures(found.measured, found.spread, facts.left_out_of_sums or ())
    icmp = {(each.asker, each.reflector): _icmp(folder, each) for each in facts.icmp or () if not each.absent}
    return SoftwareLatencies(facts, trips, lost, found, sums, changed, silent, icmp)


def _icmp(folder: Path, echoes: IcmpEchoes) -> IcmpTimes:
    try:
        return icmp_times((folder / echoes.file).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecordError) as error:
        raise RecordError(f"{echoes.file}: {error}") from error


def _heard(facts: RoundTrips) -> tuple[tuple[Exchange, ...], tuple[Device, ...], dict[str, str]]:
    """Return the exchanges and devices that tell something, and why the other devices do not.

    Where no exchange is silent all devices are returned: that their pairs do not tell them is a fault of the
    plan, which the estimate names.
    """
    devices = tuple(Device(each.name, each.hardware, each.software) for each in facts.devices)
    heard = tuple(each for each in facts.exchanges if not each.silent)
    if len(heard) == len(facts.exchanges):
        return heard, devices, {}
    told = told_devices(devices, [(each.asker, each.reflector) for each in heard])
    names = {each.name for each in told}
    silent = {
        each.name: "; ".join(
            exchange.silent
            for exchange in facts.exchanges
            if exchange.silent and each.name in (exchange.asker, exchange.reflector)
        )
        or "its partners are silent"
        for each in devices
        if each.name not in names
    }
    if not told:
        raise ReportError("no device's latency is told: " + "; ".join(dict.fromkeys(silent.values())))
    return tuple(each for each in heard if {each.asker, each.reflector} <= names), told, silent


def read_trips(
    folder: Path,
    exchange: Exchange,
    clock: DeviceClock | None,
    pauses: WitnessResult | None,
    turns: Turns | None = None,
) -> PairTrips:
    """Read the series of one direction; trips in the machine's pauses are marked, and which turn each is of.

    Raises:
        RecordError: The series is damaged.
    """
    path = folder / exchange.series
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.reader(file)
            columns = tuple(next(reader, ()))
            if columns not in (COLUMNS, COLUMNS_OF_BEFORE):
                raise RecordError(f"{exchange.series}:1: expected {','.join(COLUMNS)}")
            # A request that had no reply has no round trip; the answer counts it as lost.
            answered = [row for row in reader if row[2]]
            rows = [(int(row[1]), int(row[2]), int(row[3])) for row in answered]
            known = [int(row[6]) for row in answered if row[6]] if columns == COLUMNS else []
    except (OSError, ValueError, IndexError) as error:
        raise RecordError(f"{exchange.series}: {error}") from error
    sent, whole, residence = np.array(rows, np.int64).reshape(-1, 3).T
    by_reference = _by_reference(sent, clock)
    excluded = None
    if pauses is not None and clock is not None:
        excluded = _in_pauses(by_reference - clock.bound_ns, by_reference + whole + clock.bound_ns, pauses)
    return PairTrips(
        exchange.asker,
        exchange.reflector,
        whole - residence - exchange.hardware_ns,
        excluded,
        by_reference if clock is not None else None,
        (by_reference - turns.first_tai_ns) // (turns.every_us * 1000) if turns is not None else None,
        {each.name: float(each.ns) for each in exchange.hardware_bounds or ()},
        np.array(known, np.int64) if len(known) == len(rows) else None,
    )


def _by_reference(local_ns: np.ndarray, clock: DeviceClock | None) -> np.ndarray:
    if clock is None:
        return local_ns
    elapsed_ns = local_ns - clock.offset_ns - clock.at_reference_tai_ns
    return clock.at_reference_tai_ns + elapsed_ns - elapsed_ns * clock.rate_ppb // (PPB + clock.rate_ppb)


def _in_pauses(from_ns: np.ndarray, to_ns: np.ndarray, pauses: WitnessResult) -> np.ndarray:
    """Return which intervals touch what is known to be a pause of the machine, shape (n,)."""
    touched = np.zeros(len(from_ns), np.bool_)
    for start_ns, end_ns in pauses.pauses(overdue=True, known=True):
        touched |= (from_ns < end_ns) & (to_ns > start_ns)
    return touched
