# SPDX-License-Identifier: Apache-2.0
"""Keywords of the data-acquisition replay, and the tests that a requirements file stands for."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from robot.libraries.BuiltIn import BuiltIn

from hw.errors import CapabilityError, ConfigError, MeasurementError
from reports import current_run
from reports.daq_replay.known_delay import KnownDelay
from reports.run.current import judges
from reports.run.folder import EVIDENCE, RunFolder
from reports.run.selected import stacks_of
from reports.run.tally import effective
from resources.daq_replay.evidence import CORRECTED, LatencyEvidence
from resources.daq_replay.known_delay import find_known_delay
from resources.daq_replay.other_streams import sort_other_streams
from resources.daq_replay.pattern import load_pattern
from resources.daq_replay.plan import ReplaySettings
from resources.daq_replay.producing_target import producing_target
from resources.daq_replay.requirements import StreamRequirements, load_requirements
from resources.keywords.bench import bench_library, say
from resources.keywords.converters import Nanoseconds, Phase
from resources.keywords.judged import keep, require_passed, running_test
from resources.keywords.requirement_scope import RequirementScope, of_subjects
from resources.keywords.robot_api import keyword, library
from resources.moved import present
from resources.names import NetworkStack, Profile, ReplayClock
from resources.network_stack_ends import network_stack_on, stack_interfaces
from resources.pace import FURTHER_REPLAYS
from resources.profiles import load_profile
from resources.requirement_tests import TEMPLATE_ROW, make_tests, tests_of_other_files


@library(scope="SUITE", version="1", listener="SELF", converters={Nanoseconds: Nanoseconds.convert})
class DaqReplayLibrary(RequirementScope):
    """Replay a data-acquisition pattern into a target, and judge the latency of each stream.

    The target under test consumes it (`Start Latency Evidence`), or produces the streams of one producer
    while another target consumes (`Start Producer Evidence`).

    A suite that imports this library and has a templated test with the single row `every requirement` gets,
    when it starts, one test for each requirement of the requirements file: a site's own file needs no change
    of a suite. The pre-run modifier `resources.requirement_tests.RequirementTests` makes them before Robot
    Framework selects tests by name.
    """

    def __init__(self, requirements: Path, pattern: Path) -> None:
        """Read the requirements.

        Args:
            requirements: StreamRequirements file, such as `robot/daq_replay/requirements/daq12.toml`.
            pattern: Pattern file, such as `traffic-gen/patterns/daq12.toml`.
        """
        self._requirements_path = present(requirements)
        self._pattern_path = pattern
        self._requirements: StreamRequirements | None = None
        self._evidence: LatencyEvidence | None = None
        self._capability = ""

    @property
    def evidence(self) -> LatencyEvidence:
        """The evidence of what was replayed.

        Raises:
            MeasurementError: None was begun.
        """
        return self._current()

    def selected(self, named: Collection[str]) -> Iterable[tuple[Path, Collection[str]]]:
        """Say that the suite asks each requirement that has a test; the template row stands for all."""
        streams = {each.id: each.of for each in self._loaded().by_stream.values()}
        found = list(streams) if TEMPLATE_ROW in named else of_subjects(streams, named)
        return [(self._requirements_path, found)]

    def make_tests(self, suite: Any) -> None:
        """Put one test for each requirement in the place of the template row.

        Where a pre-run modifier has made them, from another file than this suite's, they fail.
        """
        requirements = self._loaded()
        strangers = tests_of_other_files(suite, requirements)
        make_tests(suite, requirements)
        for test in strangers:
            test.body[0].args = (TEMPLATE_ROW,)

    @keyword
    def start_latency_evidence(
        self, target: str, stack: NetworkStack, clock: ReplayClock, profile: Profile
    ) -> None:
        """Begin to collect evidence for one subject: a target with a stack and a clock.

        Args:
            target: Its name under `benchwright.targets` of the bench file.
            stack: Its network stack, a file of `targets/KIND/stack`; it stays on until the suite ends.
            clock: `two-way` or `free-run`: each producer's clock is corrected by two-way time transfer over
                the control network. `chrony`, `ntp-user`, `timeservice`, `ptp-software`, `ptp-hardware`: this
                stack runs on the target during the replay, stamps are taken as they are (of `timeservice`:
                those of the time service), and the error of its clock, measured against the timecard in the
                target, is a part of U.
            profile: `quick`, `ci`, `acceptance` or `soak`: how long, and how many samples are needed.
        """
        requirements = self._loaded()
        chosen = load_profile(profile)
        pattern = load_pattern(self._pattern_path)
        requirements.check_pattern(pattern)
        requirements.check_role("consumer")
        bench = bench_library().bench
        self._capability = "daq_replay"
        folder = _evidence_folder(current_run(), self._capability, target, stack)
        self._evidence = LatencyEvidence(
            bench, bench_library().target(target), stack, clock, chosen, requirements, folder
        )
        self._install(self._evidence, target)

    @keyword
    def start_producer_evidence(
        self,
        target: str,
        producer: int,
        consumer: str,
        stack: NetworkStack,
        clock: ReplayClock,
        profile: Profile,
    ) -> None:
        """Begin to collect evidence for a target that produces in the place of a producer of the bench.

        Args:
            target: The one under test, by its name under `benchwright.targets` of the bench file.
            producer: Number of the producer whose streams it sends; all others send, too.
            consumer: Name of the target that receives them.
            stack: Its network stack, a file of `targets/KIND/stack`; it stays on until the suite ends.
            clock: `two-way` or `free-run`: clocks are corrected by two-way time transfer.
            profile: How many samples are needed; the replay lasts as long as they take.
        """
        requirements = self._loaded()
        chosen = load_profile(profile)
        requirements.check_pattern(load_pattern(self._pattern_path))
        requirements.check_role("producer", producer)
        if clock not in CORRECTED:
            raise CapabilityError(
                f"clock {clock!r}: of a target that produces must be one of {', '.join(CORRECTED)}"
            )
        bench = bench_library().bench
        producing = producing_target(bench.spec, target, producer, consumer)
        self._capability = "daq_producer"
        self._evidence = LatencyEvidence(
            bench.described_by(producing.in_place(bench.spec)),
            producing.consumer,
            stack,
            clock,
            chosen,
            requirements,
            _evidence_folder(current_run(), self._capability, target, stack),
            producing.role,
        )
        self._install(self._evidence, target)

    @staticmethod
    def _install(evidence: LatencyEvidence, target: str) -> None:
        """Put the network stack on the target under test, until the suite leaves the bench.

        The run notes how sure a pass of its streams will be.
        """
        current_run().update(excluded_miss_probability=evidence.profile.excluded_miss_probability)
        bench = evidence.bench
        interface = bench_library().target(target).test_interface
        ends = (evidence.stack_node, evidence.target.node)
        interfaces = stack_interfaces(bench.spec, evidence.network, *ends, interface)
        bench_library().power_on(interfaces)
        folder = evidence.folder / "stack"
        bench_library().until_left(network_stack_on(evidence.network, bench, ends[0], interfaces, folder))

    @keyword
    def find_known_delay(self, producer: int, delay: Nanoseconds) -> None:
        """Delay one producer's path by a known amount; the bench must find it within its uncertainty.

        Without an impairment node on the bench the check is left out, and so it is where the target produces
        and the profile gives it no time; the report says so.

        Examples:
        | Find Known Delay | producer=3 | delay=5 ms |

        Args:
            producer: Number of the producer whose path is delayed.
            delay: With its unit, a whole number of microseconds.
        """
        evidence = self._current()
        if evidence.bench.spec.router is None:
            say("no impairment node: the known-delay check is left out")
            return
        profile = evidence.profile
        section_ms = profile.known_delay_ms if evidence.role is None else profile.producer_known_delay_ms
        if not section_ms:
            say(f"profile {profile.name} leaves the known-delay check to the consumer's suite")
            return
        found = find_known_delay(
            evidence.bench,
            evidence.target,
            load_pattern(self._pattern_path),
            section_ms,
            producer,
            delay.value_ns,
            evidence.attempt_folder / "known_delay",
            say,
            (evidence.stack_node, evidence.network),
        )
        self._record_known_delay(found, evidence)

    @keyword
    def replay_pattern(self, phase: Phase = "aligned-12", kernel_events: bool = False) -> None:
        """Replay the pattern for the profile's time; `Judge Stream` then gives the verdicts.

        Where the target produces, it is replayed until the streams that it sends have their samples.

        On a simulated bench it is replayed again, as often as the profile says at most, while there are
        streams that a further replay may bring a verdict.

        Args:
            phase: How its streams begin: the largest of each producer at once, all, one after the other.
            kernel_events: Record who has the target's processors, so that `python -m reports why` names it.
                The recorder takes some time of the target itself.
        """
        evidence = self._current()
        evidence.kernel_events = kernel_events
        pattern = load_pattern(self._pattern_path, phase)
        duration_ms = evidence.profile.duration_ms
        if evidence.role is not None:
            duration_ms = evidence.counting_ms(pattern, evidence.requirements.by_stream)
        settings = ReplaySettings(
            pattern=self._pattern_path,
            phase=phase,
            warmup_ms=evidence.profile.warmup_ms,
            duration_ms=duration_ms,
            only_producers=evidence.requirements.producers,
        )
        evidence.replay(pattern, settings, say)
        if further := len(evidence.attempts) - 1:
            replays = "further replay" if further == 1 else "further replays"
            BuiltIn().set_suite_metadata(
                FURTHER_REPLAYS, f"{further} {replays} took {evidence.further_s:.0f} s"
            )
        for _ in evidence.attempts[:-1]:
            suite = evidence.folder.relative_to(current_run().path / EVIDENCE).as_posix()
            current_run().add_attempt(suite, "inconclusive", "streams without a verdict were replayed again")

    @keyword
    def judge_stream(self, stream: str) -> None:
        """Judge the latency of one stream of the replay, write its record, fail unless the outcome is `pass`.

        The message of a failure begins with `FAIL:`, `INCONCLUSIVE:` or `UNSET:`.

        Args:
            stream: Its id in the pattern, such as `31`.
        """
        if stream == TEMPLATE_ROW:
            self._loaded()
            raise ConfigError(
                f"{self._requirements_path}: the tests are not made from this file: where a pre-run"
                " modifier makes them, name it there, as requirements=FILE"
            )
        judged = self._loaded().by_stream
        if stream not in map(str, judged):
            known = ", ".join(map(str, sorted(judged)))
            raise ConfigError(
                f"{self._requirements_path}: no requirement on stream {stream!r}; there are: {known}"
            )
        judges(judged[int(stream)].id)
        records = self._current().records(int(stream), current_run(), running_test())
        keep(records)
        require_passed(effective(records)[:1])

    @keyword
    def judge_other_streams(self) -> None:
        """Hold the streams that the target under test did not send against the pattern's budgets.

        They have no record: the consumer is judged by them where it is the target under test. Fails with
        those that are over their budgets or were lost, by name; skips where the time that the machine took
        explains all that did not come in time.
        """
        found = sort_other_streams(self._current().decided_others())
        say(str(found))
        if found.failed:
            raise AssertionError(f"FAIL: {found}")
        if found.undecided:
            raise MeasurementError(str(found))
        if found.disturbed:
            raise CapabilityError(f"the machine took the time: {found}")

    def _record_known_delay(self, found: KnownDelay, evidence: LatencyEvidence) -> None:
        run = current_run()
        measurement = evidence.known_delay_measurement(found, run)
        run.append(measurement)
        if measurement.outcome != "pass":
            raise MeasurementError(f"known-delay check: {measurement.outcome}: {measurement.reason}")
        error_us = (found.error_ns or 0) / 1000
        say(
            f"known delay {found.applied_ns / 1e6:.3f} ms found with an error of {error_us:.0f} us,"
            f" U {found.uncertainty.expanded / 1000:.0f} us"
        )

    def _loaded(self) -> StreamRequirements:
        if self._requirements is None:
            self._requirements = load_requirements(self._requirements_path)
        return self._requirements

    def _current(self) -> LatencyEvidence:
        if self._evidence is None:
            raise MeasurementError("nothing has been replayed: call `Start Latency Evidence` first")
        return self._evidence


def _evidence_folder(run: RunFolder, capability: str, target: str, stack: str) -> Path:
    """Return where the evidence of a target goes: of several network stacks each has a folder of its own."""
    several = len(stacks_of(run.manifest.asked or (), target)) > 1
    return run.evidence_folder(capability, target, *([stack] if several else []))
