# SPDX-License-Identifier: Apache-2.0
"""Keywords that measure single messages through a network stack."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from hw.errors import MeasurementError
from reports import Conditions, Measurement, Subject, current_run
from reports.errors import ReportError
from reports.realtime_ethernet.capability import MESSAGE_LATENCY, MESSAGE_THROUGHPUT, RISES
from reports.realtime_ethernet.evidence import (
    ALONE,
    BESIDE,
    FOLDER,
    LATENCY,
    MESSAGES,
    THROUGHPUT,
    Messages,
    Trial,
)
from reports.realtime_ethernet.verdict import (
    QUANTITIES,
    Demand,
    Finding,
    bytes_of_size,
    find_latency,
    find_rise,
    find_throughput,
    message_measurement,
    size_of_bytes,
)
from reports.record.context import Context
from reports.record.measurement import AxisValue, NumberedCondition
from reports.requirements import Requirement
from reports.run.current import judges
from reports.run.selected import stacks_of
from reports.units import format_value
from resources.keywords.bench import bench_library, say
from resources.keywords.judged import keep, require_passed, running_test
from resources.keywords.requirement_scope import RequirementScope
from resources.keywords.robot_api import keyword, library
from resources.moved import present
from resources.names import NetworkStack, Profile
from resources.network_stack import network_stack_of
from resources.network_stack_ends import network_stack_on, stack_interfaces
from resources.profiles import times_of
from resources.realtime_ethernet.settings import TIMES, message_times
from resources.realtime_ethernet.trials import measure_messages
from resources.requirements_file import load_requirements_file

BULK_LOAD = "bulk receiver"
"""The load of a rise, beside the idle target."""


@library(scope="SUITE", version="1", listener="SELF")
class RealtimeEthernetLibrary(RequirementScope):
    """Measure latency and throughput of single messages through a network stack, and judge them.

    After the paper on RTDiP: half of a round trip by size, the same beside a bulk receiver of no priority on
    the same CPU, and windows of messages.
    """

    def __init__(self, requirements: Path, fragments: str = "") -> None:
        """Name the requirements.

        Args:
            requirements: File such as `robot/realtime_ethernet/requirements/realtime_ethernet_virtual.toml`.
            fragments: File with those on messages of more than one frame; empty: none are sent.
        """
        paths = (requirements, Path(fragments)) if fragments else (requirements,)
        self._paths = tuple(map(present, paths))
        self._profile = ""
        self._folder = Path()
        self._messages: Messages | None = None

    def selected(self, named: Collection[str]) -> Iterable[tuple[Path, Collection[str]]]:  # noqa: ARG002 - all
        """Say that the suite asks every requirement of the file."""
        for path in self._paths:
            yield path, [each.id for each in load_requirements_file(path, *QUANTITIES).requirements]

    @keyword
    def send_messages_through_the_stack(self, target: str, stack: NetworkStack, profile: Profile) -> None:
        """Put a network stack on its ends, and make all trials of all rounds.

        Args:
            target: Name of the target under `benchwright.targets` of the bench file.
            stack: A file of `targets/KIND/stack`; it stays on until the suite ends.
            profile: `ci`, `nightly`, …: how many messages.
        """
        self._requirements()
        times = times_of(profile, TIMES, message_times)
        if len(self._paths) == 1:
            times = replace(times, fragment_sizes_bytes=())
        library = bench_library()
        bench, spec = library.bench, library.target(target)
        network = network_stack_of(spec, stack)
        run = current_run()
        several = len(stacks_of(run.manifest.asked or (), target)) > 1
        folder = run.evidence_folder(FOLDER, target, *([stack] if several else []))
        interfaces = stack_interfaces(bench.spec, network, spec.node, spec.node, spec.test_interface)
        library.power_on({*interfaces, *(each.node for each in bench.spec.producers.values())})
        library.until_left(network_stack_on(network, bench, spec.node, interfaces, folder / "stack"))
        found = measure_messages(bench, spec, network, spec.test_interface, times, folder, say)
        self._messages, self._folder, self._profile = found, folder, profile
        disturbed = sum(each.is_disturbed for each in found.trials)
        if disturbed:
            say(f"the machine's host took the time of {disturbed} of {len(found.trials)} trials")

    @keyword
    def latency_of_messages_should_be_within_its_limits(self) -> None:
        """Judge half round trips by every requirement of the file on `message_latency`.

        Fails unless all outcomes are `pass`; the message begins with `FAIL:`, `INCONCLUSIVE:` or `UNSET:`.
        """
        self._judge(self._latency, MESSAGE_LATENCY)

    @keyword
    def bulk_receiver_should_not_raise_latency_beyond_its_limits(self) -> None:
        """Judge by how much a bulk receiver raises the latency: `bulk_rise` and `receive_rise`.

        Fails unless all outcomes are `pass`; the message begins with `FAIL:`, `INCONCLUSIVE:` or `UNSET:`.
        """
        self._judge(self._rise, *RISES)

    @keyword
    def throughput_of_messages_should_reach_its_limits(self) -> None:
        """Judge windows of messages by every requirement of the file on `message_throughput`.

        Fails unless all outcomes are `pass`; the message begins with `FAIL:`, `INCONCLUSIVE:` or `UNSET:`.
        """
        self._judge(self._throughput, MESSAGE_THROUGHPUT)

    def _judge(self, find: Callable[[Requirement], tuple[Finding, Context]], *quantities: str) -> None:
        requirements = [each for each in self._requirements() if each.quantity in quantities]
        judges(*(each.id for each in requirements))
        records: list[Measurement] = []
        for each in requirements:
            try:
                found, context = find(each)
            except ReportError as error:
                raise MeasurementError(str(error)) from error
            asked = Demand(each.id, each.statistic, each.limit, each.samples, each.lost or 0)
            record = message_measurement(each.quantity, found, asked, context)
            value, u = (format_value(one, record.unit) for one in (found.value, found.uncertainty.expanded))
            say(f"{each.id}: {value}, U = {u}, with stack {self._found.stack}")
            records.append(record)
        keep(records)
        require_passed(records)

    def _latency(self, requirement: Requirement) -> tuple[Finding, Context]:
        size_bytes = bytes_of_size(requirement.of)
        found = find_latency(self._found, self._folder, size_bytes, requirement.statistic)
        return found, self._context(self._found.of(LATENCY, size_bytes), size_bytes)

    def _throughput(self, requirement: Requirement) -> tuple[Finding, Context]:
        size_bytes = bytes_of_size(requirement.of)
        found = find_throughput(self._found, self._folder, size_bytes)
        return found, self._context(self._found.of(THROUGHPUT, size_bytes), size_bytes)

    def _rise(self, requirement: Requirement) -> tuple[Finding, Context]:
        messages = self._found
        found = find_rise(requirement.quantity, messages, self._folder, requirement.statistic)
        bulk = messages.of(THROUGHPUT, messages.bulk_bytes)
        return found, self._context([*messages.of(ALONE), *messages.of(BESIDE), *bulk], None)

    def _context(self, trials: Sequence[Trial], size_bytes: int | None) -> Context:
        run, bench, messages = current_run(), bench_library().bench.spec, self._found
        files = [name for each in trials for name in (each.file, each.bulk_file) if name]
        axes = None if size_bytes is None else (AxisValue("size", size_of_bytes(size_bytes)),)
        conditions = Conditions(self._profile)
        if size_bytes is None:
            numbers = (NumberedCondition("bulk_bytes", messages.bulk_bytes),)
            conditions = Conditions(self._profile, load=BULK_LOAD, numbers=numbers)
        return Context(
            run_id=run.run_id,
            test=running_test(),
            subject=Subject(bench.name, messages.target, stack=messages.stack, axes=axes),
            conditions=conditions,
            simulated=bench.simulated,
            evidence=tuple(run.evidence(self._folder / name) for name in (MESSAGES, *files)),
        )

    def _requirements(self) -> tuple[Requirement, ...]:
        sets = [load_requirements_file(path, *QUANTITIES) for path in self._paths]
        return tuple(each for one in sets for each in one.requirements)

    @property
    def _found(self) -> Messages:
        if self._messages is None:
            raise MeasurementError("nothing was sent: call `Send Messages Through The Stack` first")
        return self._messages
