# SPDX-License-Identifier: Apache-2.0
"""Keywords that open valves and judge how late each was."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from pathlib import Path

from reports.valves.capability import DELAYS, FOLDER, QUANTITY, SCHEMA

from hw.bench import load_bench
from hw.fields import Fields
from reports import Conditions, Subject, current_run, judge
from reports.record.context import Context, Sample, build_record
from reports.record.measurement import AxisValue, NumberedCondition, Uncertainty
from reports.requirements import RequirementSet
from reports.run.current import judges
from resources.keywords.judged import keep, require_passed, running_test
from resources.keywords.requirement_scope import RequirementScope
from resources.keywords.robot_api import keyword, library
from resources.profiles import times_of
from resources.requirements_file import load_requirements_file

TIMES = Path(__file__).with_name("times.toml")
LATEST_NS = 31_000


def openings(table: Fields) -> int:
    """Read how often a profile opens each valve."""
    found = table.integer("openings", 2, 1_000_000)
    table.finish()
    return found


@library(scope="SUITE", version="1", listener="SELF")
class ValvesLibrary(RequirementScope):
    """Open valves, and hold each against its requirement."""

    def __init__(self, requirements: Path) -> None:
        """Name the requirements.

        Args:
            requirements: File such as `robot/valves/valves.toml`.
        """
        self._path = requirements

    def selected(self, named: Collection[str]) -> Iterable[tuple[Path, Collection[str]]]:  # noqa: ARG002 - all
        """Say that the suite asks every requirement of the file."""
        yield self._path, [each.id for each in self._load().requirements]

    @keyword
    def open_valves(self, bench: Path, target: str, profile: str) -> None:
        """Open the valves of a target as often as the profile says.

        Args:
            bench: The bench file.
            target: A target of it.
            profile: `ci`, …: how often.
        """
        self._bench, self._target, self._profile = load_bench(bench), target, profile
        count = times_of(profile, TIMES, openings)
        self._delays_ns = [*range(10_000, 10_000 + count - 1), LATEST_NS]
        self._file = current_run().evidence_folder(FOLDER, target) / DELAYS
        self._file.write_text(json.dumps({"schema": SCHEMA, "delays_ns": self._delays_ns}))

    @keyword
    def each_valve_should_open_in_time(self) -> None:
        """Judge each valve; fails unless all outcomes are `pass`."""
        run, records = current_run(), []
        requirements = self._load().requirements
        judges(*(each.id for each in requirements))
        for each in requirements:
            value, n = max(self._delays_ns), len(self._delays_ns)
            nothing = Uncertainty.from_parts([])
            context = Context(
                run_id=run.run_id,
                test=running_test(),
                subject=Subject(self._bench.name, self._target, axes=(AxisValue("valve", each.of),)),
                conditions=Conditions(self._profile, numbers=(NumberedCondition("pressure_kpa", 250),)),
                simulated=self._bench.simulated,
                evidence=(run.evidence(self._file),),
            )
            verdict = judge(value, each.limit, nothing, n=n, n_required=1, unit="ns")
            sample = Sample(QUANTITY, "max", value, n, 1)
            records.append(build_record(each.id, sample, each.limit, nothing, verdict, context))
        keep(records)
        require_passed(records)

    def _load(self) -> RequirementSet:
        return load_requirements_file(self._path, QUANTITY)
