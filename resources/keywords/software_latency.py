# SPDX-License-Identifier: Apache-2.0
"""Keywords that find the software latency of every device from round trips alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from robot.api import logger

from hw.errors import ConfigError, MeasurementError
from reports import Conditions, Evidence, Subject, current_run
from reports.errors import ReportError
from reports.record.context import Context
from reports.record.measurement import AxisValue, NumberedCondition
from reports.requirements import Requirement
from reports.software_latency.evidence import (
    FOLDER,
    ROUND_TRIPS,
    WITNESS,
    Injected,
    SoftwareLatencies,
    load_software_latencies,
)
from reports.software_latency.verdict import QUANTITY, closure_measurement, software_measurement
from reports.units import format_value
from resources.keywords.asks import AsksRequirements
from resources.keywords.bench import bench_library, say
from resources.keywords.judged import keep, require_passed, running_test
from resources.keywords.robot_api import keyword, library
from resources.profiles import load_profile
from resources.requirements_file import load_requirements_file
from resources.software_latency.devices import DEVICES_MIN, devices_of
from resources.software_latency.round_trips import measure_round_trips

CLOSURE_REQUIREMENT = "BENCH-ROUND-TRIPS"
INJECTED_FOLDER = "injected"


@library(scope="SUITE", version="1", listener="SELF")
class SoftwareLatencyLibrary(AsksRequirements):
    """Find the software latency of every device, send and receive of one trip together, from round trips.

    The paper on software latency estimation: of three devices three round trips tell each one's own. Roles
    swapped and a fourth device let the sums be held against each other.
    """

    def __init__(self, requirements: Path) -> None:
        """Name the requirements.

        Args:
            requirements: File such as `robot/requirements/software_latency_virtual.toml`.
        """
        self._path = requirements
        self._requirements: tuple[Requirement, ...] = ()
        self._profile = ""
        self._target = ""
        self._found: SoftwareLatencies | None = None
        self._evidence: tuple[Evidence, ...] = ()

    def asked(self, named: Collection[str]) -> Iterable[tuple[Path, Collection[str]]]:  # noqa: ARG002 - all
        """Say that the suite asks every requirement of the file."""
        yield self._path, [each.id for each in load_requirements_file(self._path, QUANTITY).requirements]

    @keyword
    def make_round_trips(self, target: str, profile: str) -> None:
        """Make round trips between the target and machines of the producers, in each direction by turns.

        Args:
            target: Name of the target under `benchwright.targets` of the bench file.
            profile: `ci`, `nightly`, …: how many.
        """
        self._requirements = load_requirements_file(self._path, QUANTITY).requirements
        self._profile, self._target, self._evidence = profile, target, ()
        self._found = self._measured(self._folder, None)
        for each in self._found.estimate.latencies:
            mean, u = format_value(each.mean_ns, "ns"), format_value(each.mean_expanded_ns, "ns", 2)
            say(f"{', '.join(each.devices)}: S = {mean}, U = {u}")

    @keyword
    def each_device_should_be_within_its_budget(self) -> None:
        """Judge every device by every requirement of the file.

        Fails unless all outcomes are `pass`; the message begins with `FAIL:`, `INCONCLUSIVE:` or `UNSET:`.
        """
        records = [
            software_measurement(
                self._all, each.of, each.id, each.limit, each.samples, self._context(each.of)
            )
            for each in self._requirements
        ]
        keep(records)
        require_passed(records)

    @keyword
    def sums_of_round_trips_should_agree(self) -> None:
        """Check the bench: roles swapped, and sums of four devices, have to agree within their U."""
        record = closure_measurement(self._all, CLOSURE_REQUIREMENT, self._context(""))
        keep([record], "they agree")
        require_passed([record])

    @keyword
    def injected_delay_should_appear_at_its_device_alone(self, device: str, delay_us: int) -> None:
        """Put a delay into one device's software, half receiving and half sending, and look for it.

        The paper's validation, (13) and (14): S of that device grows by the delay, and no other's changes,
        each within the U of both measurements.

        Args:
            device: Name of the device.
            delay_us: Of both together.
        """
        half_us = delay_us // 2
        injected = Injected(device, half_us, delay_us - half_us)
        before = self._all
        after = self._measured(self._folder / INJECTED_FOLDER, injected)
        wrong: list[str] = []
        found = {each.devices: each for each in before.estimate.latencies}
        for other in after.estimate.latencies:
            one = found[other.devices]
            put_ns = delay_us * 1000 if device in one.devices else 0
            error_ns = other.mean_ns - one.mean_ns - put_ns
            u_ns = (one.mean_expanded_ns**2 + other.mean_expanded_ns**2) ** 0.5
            shown, u = format_value(error_ns, "ns"), format_value(u_ns, "ns", 2)
            logger.info(f"{', '.join(one.devices)}: {put_ns} ns put in, error {shown}, U {u}")
            if abs(error_ns) > u_ns:
                wrong.append(f"{', '.join(one.devices)}: off by {shown}, U = {u}")
        if wrong:
            raise MeasurementError(f"{delay_us} us were put into {device}: {'; '.join(wrong)}")

    def _measured(self, folder: Path, injected: Injected | None) -> SoftwareLatencies:
        library = bench_library()
        times = load_profile(self._profile).round_trips
        if times is None:
            raise ConfigError(f"profile {self._profile}: no table {self._profile}.round_trips")
        target = library.target(self._target)
        devices = devices_of(library.bench.spec, target)
        pairs = None
        if injected is not None:  # three devices tell each one's latency
            devices = devices[:DEVICES_MIN]
            pairs = list(combinations(devices, 2))
        measure_round_trips(library.bench, target, devices, times, folder, say, injected, pairs)
        try:
            return load_software_latencies(folder)
        except ReportError as error:
            raise MeasurementError(str(error)) from error

    def _context(self, device: str) -> Context:
        run, bench, facts = current_run(), bench_library().bench.spec, self._all.facts
        if not self._evidence:
            names = [ROUND_TRIPS, *(name for each in facts.exchanges for name in (each.file, each.series))]
            names += [WITNESS] if (self._folder / WITNESS).exists() else []
            self._evidence = tuple(run.evidence(self._folder / name) for name in names)
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
            evidence=self._evidence,
        )

    @property
    def _folder(self) -> Path:
        return current_run().evidence_folder(FOLDER, self._target)

    @property
    def _all(self) -> SoftwareLatencies:
        if self._found is None:
            raise MeasurementError("nothing was measured: call `Make Round Trips` first")
        return self._found
