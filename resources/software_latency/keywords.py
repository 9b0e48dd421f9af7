# SPDX-License-Identifier: Apache-2.0
"""Keywords that find the software latency of every device from round trips alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from hw.errors import MeasurementError
from reports import Conditions, Evidence, Subject, current_run
from reports.errors import ReportError
from reports.record.context import Context
from reports.record.measurement import AxisValue, NumberedCondition
from reports.requirements import Requirement
from reports.run.current import judges
from reports.software_latency.capability import CLOSURE, QUANTITY
from reports.software_latency.evidence import (
    FOLDER,
    ROUND_TRIPS,
    WITNESS,
    RoundTrips,
    SoftwareLatencies,
    folder_of_size,
    load_software_latencies,
)
from reports.software_latency.verdict import closure_measurement, software_measurement
from reports.units import format_value
from resources.keywords.bench import bench_library, say
from resources.keywords.judged import keep, require_passed, running_test
from resources.keywords.requirement_scope import RequirementScope
from resources.keywords.robot_api import keyword, library
from resources.moved import present
from resources.names import Profile
from resources.profiles import times_of
from resources.requirements_file import load_requirements_file
from resources.software_latency.devices import devices_of, twins_delay
from resources.software_latency.round_trips import measure_round_trips
from resources.software_latency.settings import TIMES, round_trip_times


@library(scope="SUITE", version="1", listener="SELF")
class SoftwareLatencyLibrary(RequirementScope):
    """Find the software latency of every device, send and receive of one trip together, from round trips.

    The paper on software latency estimation: of three devices three round trips tell each one's own. Roles
    swapped and a fourth device let the sums be held against each other.
    """

    def __init__(self, requirements: Path) -> None:
        """Name the requirements.

        Args:
            requirements: File such as `robot/software_latency/requirements/software_latency_virtual.toml`.
        """
        self._path = present(requirements)
        self._requirements: tuple[Requirement, ...] = ()
        self._profile = ""
        self._found: list[tuple[Path, SoftwareLatencies]] = []

    def selected(self, named: Collection[str]) -> Iterable[tuple[Path, Collection[str]]]:  # noqa: ARG002 - all
        """Say that the suite asks every requirement of the file."""
        yield self._path, [each.id for each in self._load()]

    @keyword
    def make_round_trips(
        self, target: str, profile: Profile, delayed_device: str = "", delay_us: int = 0
    ) -> None:
        """Make round trips between the target and machines of the producers, in each direction by turns.

        Each size of the profile is a measurement of its own; the delayed twin takes part in the first.

        Args:
            target: Name of the target under `benchwright.targets` of the bench file.
            profile: `ci`, `nightly`, …: how many.
            delayed_device: A device that gets a twin with a known delay: `target`, or a node; empty: none.
            delay_us: Of the twin, half of it receiving and half sending; a third of the interval at most.
        """
        self._requirements = self._load()
        self._profile, self._found = profile, []
        library = bench_library()
        times = times_of(profile, TIMES, round_trip_times)
        spec = library.target(target)
        devices = devices_of(library.bench.spec, spec)
        delayed = twins_delay(delayed_device, delay_us, devices, times) if delayed_device else None
        whole = current_run().evidence_folder(FOLDER, target)
        for each in times.each_size():
            folder = folder_of_size(whole, each.size_bytes, times.sizes_bytes)
            measure_round_trips(library.bench, spec, devices, each, folder, say, delayed)
            delayed = None
            try:
                found = load_software_latencies(folder)
            except ReportError as error:
                raise MeasurementError(f"{each.size_bytes} bytes: {error}") from error
            self._found.append((folder, found))
            _say_found(found)

    @keyword
    def each_device_should_be_within_its_budget(self) -> None:
        """Judge every device by every requirement of the file, at each size.

        Fails unless all outcomes are `pass`; the message begins with `FAIL:`, `INCONCLUSIVE:` or `UNSET:`.
        """
        requirements = self._judged(QUANTITY)
        records = [
            software_measurement(found, each.of, each.id, each.limit, each.samples, context(each.of))
            for found, context in self._each_size()
            for each in requirements
        ]
        keep(records)
        require_passed(records)

    @keyword
    def sums_of_round_trips_should_agree(self) -> None:
        """Check the bench: roles swapped, and sums of four devices, have to agree as the requirement says.

        At each size.
        """
        requirements = self._judged(CLOSURE)
        records = [
            closure_measurement(found, each.id, each.limit, each.samples, context(""))
            for found, context in self._each_size()
            for each in requirements
        ]
        keep(records, "they agree")
        require_passed(records)

    @keyword
    def known_delay_should_appear_at_its_device_alone(self) -> None:
        """Look for the delay that `Make Round Trips` has given to the twin of one device.

        The paper's validation, (13) and (14): S of that device grows by the delay, and no other's changes,
        each within U. Where U is more than the delay nothing was shown, and the test fails, too.
        """
        found, _context = next(self._each_size())
        if not found.changes:
            silent = "; ".join(each.silent for each in found.facts.exchanges if each.silent)
            raise MeasurementError(silent or "no device has a delayed twin: call `Make Round Trips` with one")
        wrong: list[str] = []
        for each in found.changes:
            error, u = format_value(each.error_ns, "ns"), format_value(each.expanded_ns, "ns", 2)
            put = format_value(each.put_ns, "ns")
            say(f"{', '.join(each.devices)}: {put} put in, error {error}, U = {u}")
            if not each.is_right:
                wrong.append(f"{', '.join(each.devices)}: {put} put in, off by {error}, U = {u}")
            elif not each.is_told:
                wrong.append(f"{', '.join(each.devices)}: {put} put in, not told from none: U = {u}")
        if wrong:
            raise MeasurementError("; ".join(wrong))

    def _judged(self, quantity: str) -> list[Requirement]:
        """Return the requirements on a quantity, which the running test judges."""
        found = [each for each in self._requirements if each.quantity == quantity]
        judges(*(each.id for each in found))
        return found

    def _load(self) -> tuple[Requirement, ...]:
        return load_requirements_file(self._path, QUANTITY, CLOSURE).requirements

    def _each_size(self) -> Iterator[tuple[SoftwareLatencies, Callable[[str], Context]]]:
        """Yield what was found of each size, and what makes a device's context.

        Raises:
            MeasurementError: Nothing was measured.
        """
        if not self._found:
            raise MeasurementError("nothing was measured: call `Make Round Trips` first")
        for folder, found in self._found:
            yield found, partial(self._context, found.facts, _evidence_of(folder, found.facts))

    def _context(self, facts: RoundTrips, evidence: tuple[Evidence, ...], device: str) -> Context:
        run, bench = current_run(), bench_library().bench.spec
        subject = Subject(bench.name, facts.target)
        if device:
            subject = replace(subject, axes=(AxisValue("device", device),))
        return Context(
            run_id=run.run_id,
            test=running_test(),
            subject=subject,
            conditions=Conditions(
                self._profile, numbers=(NumberedCondition("size_bytes", facts.size_bytes),)
            ),
            simulated=bench.simulated,
            evidence=evidence,
        )


def _say_found(found: SoftwareLatencies) -> None:
    size_bytes = found.facts.size_bytes
    for each in found.estimate.latencies:
        mean, u = format_value(each.mean_ns, "ns"), format_value(each.mean_u_ns, "ns", 2)
        say(f"{', '.join(each.devices)}: S = {mean}, U = {u}, with {size_bytes} bytes")
    for exchange in found.facts.exchanges:
        if exchange.silent:
            say(f"{exchange.silent}, with {size_bytes} bytes")


def _evidence_of(folder: Path, facts: RoundTrips) -> tuple[Evidence, ...]:
    names = [ROUND_TRIPS, *(name for each in facts.exchanges for name in (each.file, each.series)), WITNESS]
    return tuple(current_run().evidence(folder / name) for name in names if (folder / name).exists())
