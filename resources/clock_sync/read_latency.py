# SPDX-License-Identifier: Apache-2.0
"""What reading each clock of host and target costs (paper on intra-process clock synchronisation, Table I).

Every clock that there could be is listed: measured, or with the reason why it was not. Nothing asks a node
anything while it measures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from hw.bench import TargetSpec
from hw.errors import BenchError
from hw.open_bench import Nodes, OpenBench
from reports.clock_read.capability import KERNEL_CLOCKS, PHC_WAYS, TIMECARD
from reports.clock_read.readings import HOST, TARGET, Reading, Readings, write_readings
from resources.clock_sync.command import clock_command
from resources.clock_sync.timecard import serve_timecards
from resources.clock_sync.times import ClockTimes

PRIORITY = 10
"""Above ordinary work, which would interrupt the readings; below all that serves packets."""
NO_CAPABILITY, INVALID = 3, 4
STARTING_S = 60.0
"""What the tool may take beside its readings: calibrating a timecard is the longest."""

Progress = Callable[[str], None]


@dataclass(frozen=True)
class ReadCommand:
    """One clock that is to be read: where, what it is, and how the tool is told."""

    place: str
    clock: str
    device: str
    options: tuple[str, ...] = ()
    not_offered: str = ""


def read_commands(target: TargetSpec) -> list[ReadCommand]:
    """Return every clock that is to be read, in the order of the report; what the bench lacks says so."""
    commands = [ReadCommand(place, name, name) for place in (HOST, TARGET) for name in KERNEL_CLOCKS]
    lacks = "" if target.ptp_clock else f"the bench file names no ptp_clock of target {target.kind}"
    device = f"phc:{target.ptp_clock}" if target.ptp_clock else ""
    commands += [ReadCommand(TARGET, f"phc-{way}", device, ("--phc-read", way), lacks) for way in PHC_WAYS]
    card = target.timecard
    lacks = "" if card else f"the bench file names no timecard of target {target.kind}"
    commands.append(ReadCommand(TARGET, TIMECARD, card.clock if card else "", (), lacks))
    return commands


def measure_read_latency(
    bench: OpenBench, target: TargetSpec, times: ClockTimes, folder: Path, progress: Progress
) -> Readings:
    """Read every clock so often as the profile says, one after the other, and write the evidence.

    Args:
        bench: An open bench; nothing else runs on it.
        target: Whose clocks are read; it is on.
        times: How many readings, and how long at most.
        folder: Evidence goes here.
        progress: Called with a line of text now and then.

    Raises:
        BenchError: A node or a tool does not work.
    """
    folder.mkdir(parents=True, exist_ok=True)
    host = bench.spec.clocks[bench.spec.reference_clock].node
    nodes = {HOST: host, TARGET: target.node}
    readings: list[Reading] = []
    with serve_timecards(bench, [target.node], None, folder):
        for command in read_commands(target):
            reading = Reading(command.place, command.clock, command.device, times.latency_reads)
            if command.not_offered:
                readings.append(replace(reading, not_offered=command.not_offered))
                continue
            progress(f"reading {command.clock} of the {command.place}")
            readings.append(_read(bench, nodes[command.place], command, reading, times.latency_max_s, folder))
    found = Readings(target.kind, "idle", tuple(readings))
    write_readings(folder, found)
    return found


def _read(
    bench: Nodes, node: str, command: ReadCommand, reading: Reading, max_s: int, folder: Path
) -> Reading:
    argv = [*clock_command(bench, node, "latency", clock=command.device), *command.options]
    argv += ["--reads", str(reading.reads), "--duration-ms", str(max_s * 1000), "--priority", str(PRIORITY)]
    done = bench.node(node).run(argv, timeout_s=max_s + STARTING_S, check=False)
    said = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.exit_code}"]
    reason = said[0].removeprefix("bw-clock latency: ").removeprefix("--clock: ")
    reason = reason.removeprefix(f"--phc-read: {command.options[-1] if command.options else ''}: ")
    if done.exit_code == NO_CAPABILITY:
        return replace(reading, not_offered=reason)
    if done.exit_code not in (0, INVALID):
        raise BenchError(f"{node}: bw-clock latency --clock {command.device}: {reason}")
    if not done.stdout.strip():
        return replace(reading, failed=reason)
    file = f"{command.place}-{command.clock}.ndjson"
    (folder / file).write_text(done.stdout, encoding="utf-8")
    return replace(reading, file=file)
