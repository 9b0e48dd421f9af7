# SPDX-License-Identifier: Apache-2.0
"""Wake-ups of a target, by cyclictest of rt-tests: a thread a CPU, as OSADL measures them.

The bench's witness watches its machine all the while. Nothing goes to the target's node meanwhile.
"""

from __future__ import annotations

import json
import math
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hw.answers import tail
from hw.bench import TargetSpec
from hw.errors import CapabilityError, MeasurementError
from hw.open_bench import OpenBench
from hw.protocols import Node
from reports.errors import ReportError
from reports.rt_baseline.emulator import VCPU, keep_emulator
from reports.rt_baseline.evidence import CYCLICTEST, HISTOGRAM, WITNESS, WakeupFacts, write_facts
from reports.units import NS_PER_S
from resources.control_loops.loads import known_load
from resources.loads.kinds import load_of
from resources.loads.load import Load
from resources.realtime_ethernet.trials import stolen_and_all_ticks
from resources.tools.experiment import Experiment, silence
from resources.tools.fetched import fetch_known
from resources.tools.witness import add_witness

PROGRAM = "cyclictest"
PACKAGE = "rt-tests"
BOOT_ID = "/proc/sys/kernel/random/boot_id"
PRIORITY = 95
"""Above all that the bench starts on a target, and under the kernel's own threads that keep it alive."""
WITNESS_MAX_MS = 86_400_000
STARTING_S = 60
"""How long a load may be there longer than the wake-ups, since it begins before them."""
ENDING_S = 60.0
"""What cyclictest may take beyond its cycles: to begin, and to write its files."""
LATE_SHARE = 1.0
"""So much longer than its cycles it may take, of them: a machine that is away half of the time."""
EMULATOR_WATCHED_S = 3600.0
"""A guest's emulator is watched up to here: a gigabyte of readings, which are read at once at the end."""

_LATENCY_TARGET = re.compile(r"^# /dev/cpu_dma_latency set to ([0-9]+)us$", re.MULTILINE)


@dataclass(frozen=True)
class AskedWakeups:
    """What is measured: see `WakeupFacts`; `load` is a kind, empty: none."""

    interval_us: int
    cycles: int
    histogram_us: int
    load: str = ""

    @property
    def within_s(self) -> float:
        """Return how long it takes where no wake-up is late."""
        return self.interval_us * self.cycles / 1e6


def measure_wakeups(bench: OpenBench, target: TargetSpec, asked: AskedWakeups, folder: Path) -> WakeupFacts:
    """Run cyclictest on a target, and write the evidence.

    Args:
        bench: An open bench; the target is on.
        target: Where.
        asked: What.
        folder: Evidence goes here.

    Raises:
        CapabilityError: The target has no cyclictest, or cannot have the load.
        MeasurementError: cyclictest did not come to its end, or the load did not last.
        BenchError: A node or a tool does not work.
    """
    folder.mkdir(parents=True, exist_ok=True)
    node = bench.node(target.node)
    require_cyclictest(node)
    remote = node.fresh_folder("wakeups")
    machine = machine_of(bench, target)
    is_watched = machine == "guest" and asked.within_s <= EMULATOR_WATCHED_S
    threads = bench.virtual.emulating_threads(node.name) if is_watched else {}
    # Each is read at each wake-up of the witness, which goes before the emulator: no more than needed.
    emulated = {name: tid for name, tid in threads.items() if name.startswith(VCPU)}
    with Experiment(bench) as experiment:
        account = bench.virtual.target_account()
        stem = folder / Path(WITNESS).stem
        witness = add_witness(experiment, stem, WITNESS_MAX_MS, emulated, account)
        load = None
        if asked.load:
            lasts_s = math.ceil(asked.within_s * (1 + LATE_SHARE)) + STARTING_S
            load = Load(bench, load_of(asked.load, node.name, lasts_s, {}), folder)
            load.start(experiment)
        before = _ticks(node)
        began_ns = time.time_ns()
        job = experiment.start(node.name, cyclictest_words(asked, remote), folder / PROGRAM)
        silence(bench, time.monotonic() + asked.within_s, [node.name])
        code = job.wait(asked.within_s * LATE_SHARE + ENDING_S)
        ended_ns = time.time_ns()
        printed = job.fetch()
        after = _ticks(node)
        if load is not None:
            load.end()
        fetch_known(node, remote, (CYCLICTEST, HISTOGRAM), folder)
        if witness is not None:
            witness.stop()
            experiment.collect(witness, ENDING_S).require_done()
    if witness is not None and emulated:
        keep_pauses(folder, [*emulated], asked.interval_us, (began_ns, ended_ns))
    if code:
        raise MeasurementError(
            f"{PROGRAM} on {node.name} {said_end(code)} ({tail(printed.with_suffix('.err'))})"
        )
    for name in (CYCLICTEST, HISTOGRAM):
        if not (folder / name).exists():
            raise MeasurementError(f"{PROGRAM} on {node.name} left no {name}: it did not come to its end")
    stolen, ticks = (max(0, end - begin) for begin, end in zip(before, after, strict=True))
    set_to = _LATENCY_TARGET.search(printed.read_text("utf-8", errors="replace"))
    facts = WakeupFacts(
        target.kind,
        asked.interval_us,
        asked.cycles,
        asked.histogram_us,
        PRIORITY,
        machine,
        stolen,
        max(ticks, stolen),
        int(set_to[1]) if set_to else None,
        known_load(load, folder) if load else None,
    )
    write_facts(folder, facts)
    return facts


def keep_pauses(folder: Path, threads: list[str], interval_us: int, between_utc_ns: tuple[int, int]) -> None:
    """Keep when a guest's emulator did not run it (`keep_emulator`), by this machine's clock.

    Raises:
        MeasurementError: The witness has no series, or a torn one.
    """
    try:
        ready = json.loads((folder / WITNESS).read_text("utf-8").splitlines()[0])
        began_ns, ended_ns = (each + ready["tai_utc_s"] * NS_PER_S for each in between_utc_ns)
        keep_emulator(folder, threads, interval_us, (began_ns, ended_ns))
    except (ReportError, ValueError, LookupError, TypeError) as error:
        raise MeasurementError(str(error)) from error


def require_cyclictest(node: Node) -> None:
    """Raise CapabilityError where a node has no cyclictest that can write JSON."""
    found = node.run(["sh", "-c", f"{PROGRAM} --help 2>&1"], check=False)
    if "--json" not in found.stdout:
        raise CapabilityError(
            f"{node.name} has no {PROGRAM} that writes JSON: install Debian's package {PACKAGE} there, 2.0 or"
            " later"
        )


def cyclictest_words(asked: AskedWakeups, remote: str) -> list[str]:
    """Return the command line; its files go to a folder of the node."""
    return [
        PROGRAM,
        "--smp",
        "--mlockall",
        "--quiet",
        f"--priority={PRIORITY}",
        f"--interval={asked.interval_us}",
        f"--loops={asked.cycles}",
        f"--histogram={asked.histogram_us}",
        f"--histfile={remote}/{HISTOGRAM}",
        f"--json={remote}/{CYCLICTEST}",
    ]


def machine_of(bench: OpenBench, target: TargetSpec) -> Literal["shared", "guest", "own"]:
    """Return whose CPUs a target runs on, see `WakeupFacts`: with the witness it shares a kernel, or not."""
    witness = bench.spec.witness
    if witness is not None and _boot(bench.node(witness.node)) == _boot(bench.node(target.node)):
        return "shared"
    return "own" if bench.spec.virtual is None else "guest"


def _boot(node: Node) -> str:
    """Return what tells the boot of a kernel from every other."""
    return node.run(["cat", BOOT_ID]).stdout


def _ticks(node: Node) -> tuple[int, int]:
    return stolen_and_all_ticks(node.run(["cat", "/proc/stat"]).stdout, node.name)


def said_end(code: int) -> str:
    """Return how a program that did not come to its end ended."""
    number = code - 128 if code > 128 else -code
    return f"was killed by signal {number}" if number > 0 else f"ended with exit code {code}"
