# SPDX-License-Identifier: Apache-2.0
"""Keywords that hold bulk data as the user counts it against what the kernel counts."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from hw.errors import MeasurementError
from reports import Conditions, Subject, current_run
from reports.errors import ReportError
from reports.record.context import Context
from reports.requirements import Requirement
from reports.run.current import judges
from reports.timeline.bulk import Bulk, load_bulk_transfer
from reports.timeline.bulk_evidence import BULK_FILE, BULK_FOLDER
from reports.timeline.bulk_verdict import BULK_QUANTITIES, bulk_measurement
from reports.timeline.capability import BULK_DIFFERENCE, BULK_UNMATCHED, LEG_TIME
from reports.timeline.legs_evidence import FOLDER
from resources.keywords.bench import bench_library, say
from resources.keywords.judged import keep, require_passed, running_test
from resources.keywords.requirement_scope import RequirementScope
from resources.keywords.robot_api import keyword, library
from resources.moved import present
from resources.names import Profile
from resources.profiles import times_of
from resources.requirements_file import load_requirements_file
from resources.timeline.bulk_trial import BulkData, measure_bulk
from resources.timeline.settings import TIMES, timeline_times

JUDGING = {
    "Bulk Payload Should Be Equal": BULK_DIFFERENCE,
    "Bulk Segments Should Have Partners": BULK_UNMATCHED,
}


@library(scope="SUITE", version="1", listener="SELF")
class TimelineBulkLibrary(RequirementScope):
    """Send bulk data to a target, and hold the user's bytes against the kernel's.

    After the paper on distributed control loops, its ettcp: both programs record each piece that they write
    or read, the target's kernel each segment that comes, and the sender's each that is sent again.
    """

    def __init__(self, requirements: Path) -> None:
        """Name the requirements.

        Args:
            requirements: File such as `robot/timeline/requirements/timeline_virtual.toml`.
        """
        self._path = present(requirements)
        self._profile = ""
        self._folder = Path()
        self._bulk: Bulk | None = None

    def selected(self, named: Collection[str]) -> Iterable[tuple[Path, Collection[str]]]:
        """Say that a suite asks the requirements on what it judges of bulk data."""
        quantities = {quantity for words, quantity in JUDGING.items() if words in named}
        if quantities:
            yield self._path, [each.id for each in self._requirements(*quantities)]

    @keyword
    def send_bulk_data_to_the_target(self, target: str, profile: Profile) -> None:
        """Send random data from a producer's node to the target, and record both programs and both kernels.

        Args:
            target: Name of the target under `benchwright.targets` of the bench file.
            profile: `ci`, `nightly`, …: how much.
        """
        library = bench_library()
        bench, spec = library.bench, library.target(target)
        times = times_of(profile, TIMES, timeline_times)
        self._profile = profile
        self._folder = current_run().evidence_folder(FOLDER, target) / BULK_FOLDER
        say(f"{times.bulk_bytes} bytes to {target}")
        data = BulkData(times.bulk_bytes, times.bulk_block_bytes, times.bulk_rate_mbit)
        measure_bulk(bench, spec, data, self._folder)
        try:
            found = self._bulk = load_bulk_transfer(self._folder)
        except ReportError as error:
            raise MeasurementError(str(error)) from error
        if found.segments is None:
            say(f"the kernel was not recorded: {found.facts.refused}")
            return
        calls, segments = found.read.end_bytes.size, found.segments.time_ns.size
        say(
            f"user: {found.read.bytes} bytes in {calls} calls; kernel: {found.segments.bytes}"
            f" in {segments} segments, {found.retransmissions} sent again;"
            f" {found.received.throughput_mbit:.0f} Mbit/s"
        )

    @keyword
    def bulk_payload_should_be_equal(self) -> None:
        """Judge by how many bytes user and kernel differ, by every requirement on it.

        Fails unless all outcomes are `pass`; the message begins with `FAIL:`, `INCONCLUSIVE:` or `UNSET:`.
        """
        self._judge(BULK_DIFFERENCE)

    @keyword
    def bulk_segments_should_have_partners(self) -> None:
        """Judge how many segments no call has read, or one that had returned before they came.

        Fails unless all outcomes are `pass`; the message begins with `FAIL:`, `INCONCLUSIVE:` or `UNSET:`.
        """
        self._judge(BULK_UNMATCHED)

    def _judge(self, quantity: str) -> None:
        if self._bulk is None:
            raise MeasurementError("nothing was sent: call `Send Bulk Data To The Target` first")
        requirements = self._requirements(quantity)
        judges(*(each.id for each in requirements))
        records = [bulk_measurement(self._bulk, each, self._context()) for each in requirements]
        keep(records)
        require_passed(records)

    def _requirements(self, *quantities: str) -> tuple[Requirement, ...]:
        every = load_requirements_file(self._path, LEG_TIME, *BULK_QUANTITIES).requirements
        return tuple(each for each in every if each.quantity in quantities)

    def _context(self) -> Context:
        assert self._bulk is not None
        run, bench, facts = current_run(), bench_library().bench.spec, self._bulk.facts
        return Context(
            run_id=run.run_id,
            test=running_test(),
            subject=Subject(bench.name, facts.target),
            conditions=Conditions(self._profile),
            simulated=bench.simulated,
            evidence=tuple(run.evidence(self._folder / name) for name in (BULK_FILE, *facts.files)),
        )
