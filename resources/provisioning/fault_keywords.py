# SPDX-License-Identifier: Apache-2.0
"""Keywords that give a virtual target a fault and see how the bench takes it."""

from __future__ import annotations

import json
import time
from pathlib import Path

from robot.api import logger

from hw.bench import load_bench
from hw.errors import BenchwrightError, CapabilityError, MeasurementError
from hw.faults import STRIKING_LATER, Fault, with_fault
from hw.leftovers import leftovers
from hw.provisioning import Provisioner
from reports import current_run
from resources.keywords.bench import BenchLibrary, bench_library, say
from resources.keywords.robot_api import keyword, library
from resources.names import Profile
from resources.profiles import times_of
from resources.provisioning.keywords import FOLDER
from resources.provisioning.settings import TIMES, provisioning_times
from resources.tools.fact_differences import differing_facts


@library(scope="SUITE", version="1")
class ProvisioningFaultsLibrary:
    """Open a bench whose target has a fault, provision it, and hold the error against what is expected."""

    @keyword
    def fault_should_be_told(
        self, bench: Path, target: str, profile: Profile, fault: Fault, exit_code: int, cause: str
    ) -> None:
        """Give a target a fault, provision it, and see that this ends in a clear error and leaves nothing.

        The error has to have the exit code, and to name the target's node and the cause. Where provisioning
        failed on a target that is still reached, its facts have to be those of before. In the end the bench
        has left nothing on this machine.

        Skips where the profile does not ask for the fault, or the target cannot have it.

        Args:
            bench: Bench file.
            target: Name of the target under `benchwright.targets`.
            profile: Its `provisioning.faults` are the faults that it asks for.
            fault: What is wrong with the target.
            exit_code: As in docs/exit-codes.md.
            cause: Words that the error has to have; several that may be in their place are separated by `|`.
        """
        times = times_of(profile, TIMES, provisioning_times)
        if fault not in times.faults:
            raise CapabilityError(f"profile {profile}: {fault} is not among provisioning.faults")
        spec = load_bench(bench)
        if target not in spec.targets:
            raise CapabilityError(
                f"bench {spec.name}: no target {target!r}; there are: {', '.join(spec.targets)}"
            )
        node = spec.targets[target].node
        with_fault(spec, node, fault)  # before anything is built: it may not be possible
        library = bench_library()
        library.shut()
        start_s = time.monotonic()
        try:
            library.open_with_faults(bench, {node: fault})
            error = _provoke(library, target, fault)
            _keep(library, target, fault, error, time.monotonic() - start_s)
        finally:
            library.shut()
        say(f"{fault}: {error}")
        wrong = list(_discrepancies(error, exit_code, node, cause))
        wrong += [f"left on this machine: {trace}" for trace in leftovers(spec)]
        if wrong:
            raise MeasurementError(f"{fault}: {'; '.join(wrong)}; the error: {error}")


def _provoke(library: BenchLibrary, target: str, fault: Fault) -> BenchwrightError:
    """Provision the target until it fails, and return how."""
    spec = library.target(target)
    folder = current_run().evidence_folder(FOLDER, target, f"fault-{fault}")
    try:
        library.bench.power_on([spec.node])
        work = Provisioner(library.bench.node(spec.node), spec)
        work.restore()
        before = work.facts_text()
        if fault == Fault.LOSES_SSH:
            work.apply(folder / "apply.ndjson")
        if fault in STRIKING_LATER:
            library.bench.begin_fault(spec.node)
    except CapabilityError:
        raise
    except BenchwrightError as error:
        return error
    try:
        work.apply(folder / "apply.ndjson")
    except BenchwrightError as error:
        if fault != Fault.LOSES_SSH:
            work.restore()
            _require_equal(before, work.facts_text())
        return error
    raise MeasurementError(f"{fault}: the target was provisioned as if nothing was wrong")


def _require_equal(before: str, after: str) -> None:
    differing = differing_facts(before, after)
    if differing:
        raise MeasurementError(f"the target is not as it was: {', '.join(differing)}")


def _discrepancies(error: BenchwrightError, exit_code: int, node: str, cause: str) -> list[str]:
    """Return what is wrong with an error."""
    text = str(error)
    discrepancies: list[str] = []
    if error.exit_code != exit_code:
        discrepancies.append(f"its exit code is {error.exit_code}, must be {exit_code}")
    if node not in text:
        discrepancies.append(f"it does not name the node {node}")
    if not any(words.strip() in text for words in cause.split("|")):
        discrepancies.append(f"it does not name the cause: {cause}")
    return discrepancies


def _keep(library: BenchLibrary, target: str, fault: Fault, error: BenchwrightError, took_s: float) -> None:
    """Keep error and console as evidence."""
    folder = current_run().evidence_folder(FOLDER, target, f"fault-{fault}")
    told = {"fault": fault, "error": str(error), "exit_code": error.exit_code, "took_s": round(took_s, 1)}
    (folder / "error.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    console = library.bench.console(library.target(target).node)
    if console:
        (folder / "console.log").write_text(console, encoding="utf-8")
    logger.info(f"{fault}: told after {took_s:.1f} s")
