# SPDX-License-Identifier: Apache-2.0
"""A target is provisioned again and again, cut off from its power, restarted: what differs then is counted.

A difference is a fact that is not as it was, or a setting that a second provisioning changed. The facts of
every step are kept as the target wrote them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from hw.bench import TargetSpec
from hw.errors import BenchError, CapabilityError, MeasurementError
from hw.open_bench import PoweredNodes
from hw.protocols import Job
from hw.provisioning import Provisioner
from resources.tools.fact_differences import differing_facts, differing_lasting_facts

NOTICED_S = 30.0
"""Within which a tool's end has to be noticed."""
_LOST = "has lost its power"

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Round:
    """What differed after one event.

    Attributes:
        differences: Names of facts and settings.
        evidence: Files of the run folder that it was found in.
    """

    differences: tuple[str, ...]
    evidence: tuple[Path, ...]


class ProvisioningTrials:
    """Trials of one target on an open bench; its node is on."""

    def __init__(self, bench: PoweredNodes, target: TargetSpec, folder: Path, progress: Progress) -> None:
        """Undo what a killed run has left, and read the target's facts as they are then.

        Args:
            bench: The open bench.
            target: Of it; on.
            folder: For evidence.
            progress: Is told each step.
        """
        self._bench = bench
        self._target = target
        self._folder = folder
        self._progress = progress
        self._work = self._provisioner()
        self._work.restore()
        self._untouched = self._facts("facts-untouched.json")
        self._provisioned: Path | None = None
        self._apply_s = 1.0
        self._touched = False

    @property
    def untouched_facts(self) -> str:
        """Return the facts of the untouched target, as it wrote them."""
        return self._untouched.read_text(encoding="utf-8")

    # -- what is tried

    def provision_and_restore(self, repeats: int) -> tuple[list[Round], list[Round]]:
        """Provision, provision again and restore, many times in a row.

        Returns:
            What differed after provisioning twice, and after `restore`, of each repetition.

        Raises:
            BenchError: The target cannot be provisioned or given back.
            MeasurementError: There was nothing to be set: nothing can be said of giving it back then.
        """
        twice: list[Round] = []
        restored: list[Round] = []
        for number in range(1, repeats + 1):
            self._progress(f"{self._target.node}: provisioning twice, and restoring: {number} of {repeats}")
            start_s = time.monotonic()
            changed = self._apply(f"apply-{number}.ndjson")
            self._apply_s = time.monotonic() - start_s
            first = self._facts(f"facts-provisioned-{number}.json")
            self._provisioned = self._provisioned or first
            if not changed or not self._differing(self._untouched, first):
                raise MeasurementError(f"{self._target.node}: there was nothing to be set before")
            again = self._apply(f"apply-again-{number}.ndjson")
            second = self._facts(f"facts-provisioned-again-{number}.json")
            twice.append(Round((*again, *self._differing(first, second)), (first, second)))
            self._give_back()
            after = self._facts(f"facts-restored-{number}.json")
            restored.append(Round(self._differing(self._untouched, after), (self._untouched, after)))
        return twice, restored

    def cut_power(self, number: int, random: Random) -> Round:
        """Cut the power of the provisioned target, switch it on again, and see what the next start finds.

        Args:
            number: Which one: the first is while a tool runs, the others while it is provisioned.
            random: Says when.

        Raises:
            CapabilityError: The target's power cannot be switched.
            BenchError: It does not come up again, or cannot be provisioned.
            MeasurementError: The bench did not notice it.
        """
        node = self._target.node
        name = f"power-cut-{number}"
        if number == 1:
            self._apply(f"{name}-apply.ndjson")
            job = self._running_tool(name)
            self._progress(f"{node}: power cut while a tool runs")
            self._interrupt(self._bench.cut_power, job)
            noticed = _failure_of(job)
        else:
            wait_s = random.uniform(0.0, self._apply_s)
            self._progress(f"{node}: power cut {wait_s:.2f} s after provisioning has begun")
            noticed = self._cut_while_applying(f"{name}-apply.ndjson", wait_s)
        if _LOST not in noticed:
            raise MeasurementError(f"{node}: the power cut was not noticed: {noticed or 'nothing failed'}")
        return self._next_start(name, noticed)

    def restart(self, number: int) -> Round:
        """Have the provisioned target restart while a tool runs, and see what the next start finds.

        Raises:
            CapabilityError: It cannot restart.
            BenchError: It does not, or does not come up again, or cannot be provisioned.
            MeasurementError: The bench did not notice it.
        """
        name = f"restart-{number}"
        self._apply(f"{name}-apply.ndjson")
        job = self._running_tool(name)
        self._progress(f"{self._target.node}: restart while a tool runs")
        self._interrupt(self._bench.restart, job)
        noticed = _failure_of(job)
        if not noticed:
            raise MeasurementError(f"{self._target.node}: the restart was not noticed")
        return self._next_start(name, noticed)

    def end(self) -> None:
        """Give the target back where a trial was broken off; harmless where none was.

        Raises:
            BenchError: It is not reached, or a setting could not be given back.
        """
        if self._touched:
            self._give_back()

    # -- how

    def _interrupt(self, how: Callable[[str], None], job: Job) -> None:
        """Interrupt the target's work; where that is not possible, end it as it should."""
        try:
            how(self._target.node)
        except CapabilityError:
            job.stop()
            job.wait(NOTICED_S)
            self._give_back()
            raise

    def _give_back(self) -> int:
        """Restore the target; return how many settings were given back."""
        count = self._work.restore()
        self._touched = False
        return count

    def _next_start(self, name: str, noticed: str) -> Round:
        """Switch on, do what every start does first, provision and give back; count what differs."""
        node = self._target.node
        self._progress(f"noticed: {noticed}; switching {node} on again")
        start_s = time.monotonic()
        self._bench.power_on([node])
        took_s = time.monotonic() - start_s
        self._work = self._provisioner()
        given_back = self._give_back()
        self._progress(f"{node}: on again after {took_s:.1f} s; {given_back} settings given back")
        found = self._facts(f"{name}-facts-found.json")
        self._apply(f"{name}-apply-again.ndjson")
        provisioned = self._facts(f"{name}-facts-provisioned.json")
        self._give_back()
        differing = self._differing_after_start(self._untouched, found)
        evidence = [self._untouched, found, provisioned]
        if self._provisioned is not None:
            differing += self._differing_after_start(self._provisioned, provisioned)
            evidence.append(self._provisioned)
        return Round(differing, tuple(evidence))

    def _cut_while_applying(self, file: str, wait_s: float) -> str:
        """Cut the power while settings are applied; return how that failed, or how the next step did."""
        failures: list[str] = []

        def apply() -> None:
            try:
                self._apply(file)
                self._work.facts_text()  # it may have ended just before
            except BenchError as error:
                failures.append(str(error))

        worker = threading.Thread(target=apply, name="provisioning")
        worker.start()
        time.sleep(wait_s)
        self._bench.cut_power(self._target.node)
        worker.join()
        return "; ".join(failures)

    def _running_tool(self, name: str) -> Job:
        node = self._bench.node(self._target.node)
        tool = self._bench.tool(self._target.node)
        job = node.start([tool, "witness"], self._folder / f"{name}-tool")
        job.wait_ready(NOTICED_S)
        return job

    def _provisioner(self) -> Provisioner:
        return Provisioner(self._bench.node(self._target.node), self._target)

    def _apply(self, file: str) -> list[str]:
        """Apply the settings; return those that were changed."""
        self._touched = True
        items = self._work.apply(self._folder / file)
        return [f"setting {item['item']}" for item in items if item["changed"]]

    def _facts(self, file: str) -> Path:
        path = self._folder / file
        path.write_text(self._work.facts_text(), encoding="utf-8")
        return path

    @staticmethod
    def _differing(expected: Path, found: Path) -> tuple[str, ...]:
        return differing_facts(expected.read_text(encoding="utf-8"), found.read_text(encoding="utf-8"))

    @staticmethod
    def _differing_after_start(expected: Path, found: Path) -> tuple[str, ...]:
        return differing_lasting_facts(
            expected.read_text(encoding="utf-8"), found.read_text(encoding="utf-8")
        )


def _failure_of(job: Job) -> str:
    """Return why a tool cannot be waited for; empty: it can."""
    try:
        code = job.wait(NOTICED_S)
    except BenchError as error:
        return str(error)
    raise MeasurementError(f"{job.name}: ended with exit code {code}, as if nothing had happened")


def differences_of(rounds: Sequence[Round]) -> list[tuple[str, ...]]:
    """Return the differences of some rounds."""
    return [each.differences for each in rounds]
