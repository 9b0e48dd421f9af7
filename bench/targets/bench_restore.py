# SPDX-License-Identifier: Apache-2.0
"""Provisioning and restoring targets in a row, and runs that are killed at random instants.

For each target of a virtual bench, in this order:

* `--repeats`: provision, check, restore, again and again; the facts have to be those of before, byte
  for byte. After a restart of the target those have to be that a restart leaves as they are.
* `--kills`: a whole short qualification is ended by SIGKILL at an instant drawn uniformly from how long one
  takes, by turns its process of Robot Framework and that one's parent. The next start has to find the machine
  clean and the target as it was, and to provision and restore it.
* `--standing-kills`: the same with a target that outlives the run, as a real machine does: its settings, its
  undo file and the tools on it stay behind.

A whole run has to come through before. The benches have one target each and are made from the bench file.
Long series are done in pieces: `--first` says with which of the drawn instants to go on.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from bench.lab.killed_run import Place, Run, Victim, machine_state
from bench.lab.options import Options, takes
from bench.lab.report import REPOSITORY, Bar, publish, say
from bench.targets.one_target_bench import open_standing, write_bench
from hw.bench import load_bench
from hw.drivers.ssh import REMOTE_TOOLS
from hw.drivers.windows_ssh import WindowsSshNode
from hw.errors import BenchError, BenchwrightError
from hw.protocols import Node
from hw.provisioning import Provisioner
from hw.session import open_bench
from resources.qualify import BAD_INPUT, BENCH_FAULT, NO_CAPABILITY
from resources.tools.fact_differences import differing_facts, differing_lasting_facts

VIRTUAL_BENCH = REPOSITORY / "hw" / "benches" / "virtual.yaml"
Differing = Callable[[str, str], tuple[str, ...]]
"""Names the facts that differ: all, or those that a restart leaves as they are."""
LEFT_BY_ITSELF_S = 15.0
"""What a killed run leaves for a time: its SSH connection ends when nobody uses it any more."""
WINDOWS_TOOLS = ("bw-traffic", "bw-clock", "bw-job")
TOOLS_ON_LINUX = f"readlink /proc/[0-9]*/exe | grep ^{REMOTE_TOOLS}/ || :"


@dataclass
class Series:
    """What has been seen of one target."""

    times_s: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    done: dict[str, int] = field(default_factory=dict[str, int])
    failures: list[str] = field(default_factory=list[str])
    kills: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def note(self, what: str, seconds: float) -> None:
        """Keep a time."""
        self.times_s.setdefault(what, []).append(seconds)

    def fail(self, where: str, what: str) -> None:
        """Count a failure and say it at once."""
        self.failures.append(f"{where}: {what}")
        say(f"FAILURE {where}: {what}")


def as_bytes(facts: dict[str, Any]) -> str:
    """Return facts as provisioning writes them into a run folder."""
    return json.dumps(facts, indent=1) + "\n"


def tools_on(node: Node) -> list[str]:
    """Return the native tools that run on a node."""
    if isinstance(node, WindowsSshNode):
        listed = node.run(["tasklist"]).stdout.splitlines()
        return [line for line in listed if line.startswith(WINDOWS_TOOLS)]
    return node.run(["sh", "-c", TOOLS_ON_LINUX]).stdout.split()


def provision_and_restore(
    provisioner: Provisioner,
    wanted_before: str,
    folder: Path,
    series: Series,
    where: str,
    *,
    differing: Differing,
) -> None:
    """Provision, check, restore; the facts as found and those afterwards have to be those of before."""
    begin_s = time.monotonic()
    report = provisioner.prepare(folder)
    series.note("provision_s", time.monotonic() - begin_s)
    if names := differing(wanted_before, (folder / "facts-before.json").read_text()):
        series.fail(where, f"facts as found are not those of before: {', '.join(names)}")
    if not report.changed or as_bytes(report.facts) == wanted_before:
        series.fail(where, "nothing was changed")
    for item in provisioner.check():
        series.fail(where, f"{item['item']} is not as wanted")
    begin_s = time.monotonic()
    provisioner.restore()
    series.note("restore_s", time.monotonic() - begin_s)
    if names := differing(wanted_before, as_bytes(provisioner.facts())):
        series.fail(where, f"facts after restoring are not those of before: {', '.join(names)}")


def repeat(place: Place, count: int, folder: Path, series: Series) -> None:
    """Provision and restore a target in a row, the bench open all the time."""
    with open_bench(place.bench_file) as bench:
        target = bench.spec.targets[place.target]
        bench.power_on([target.node])
        provisioner = Provisioner(bench.node(target.node), target)
        before = as_bytes(provisioner.facts())
        for number in range(1, count + 1):
            where = f"{place.target} repeat {number}"
            try:
                provision_and_restore(provisioner, before, folder, series, where, differing=differing_facts)
            except BenchwrightError as error:
                series.fail(where, str(error))
            series.done["repeats"] = number
            say(f"{where}: {series.times_s['provision_s'][-1]:.1f} s")


def whole_run(place: Place, folder: Path, series: Series) -> tuple[float, str]:
    """Let a run come through; return how long it took, in s, and the facts that it found.

    Raises:
        BenchError: It did not come as far as the facts.
    """
    run = Run(place, folder)
    code, took_s = run.wait()
    if code in (BAD_INPUT, NO_CAPABILITY, BENCH_FAULT):
        series.fail(f"{place.target} whole run", f"exit code {code}: {run.said()[-1500:]}")
    series.note("run_s", took_s)
    facts = run.results / "latest" / "evidence" / "provisioning" / place.target / "facts-before.json"
    if not facts.exists():
        raise BenchError(f"a whole run comes to nothing: exit code {code}: {run.said()[-1500:]}")
    return took_s, facts.read_text()


def next_start(place: Place, run: Run, facts: str, folder: Path, series: Series, where: str) -> None:
    """Open the bench after a kill: nothing of the run lives, and the target is as it was."""
    begin_s = time.monotonic()
    with open_bench(place.bench_file) as bench:
        target = bench.spec.targets[place.target]
        bench.power_on([target.node])
        node = bench.node(target.node)
        for pid, command in run.survivors(LEFT_BY_ITSELF_S).items():
            series.fail(where, f"process {pid} of the killed run lives: {command}")
        for tool in tools_on(node):
            series.fail(where, f"a tool runs on the target: {tool}")
        provisioner = Provisioner(node, target)
        provision_and_restore(provisioner, facts, folder, series, where, differing=differing_lasting_facts)
    series.note("next_start_s", time.monotonic() - begin_s)


def kill_runs(place: Place, kind: str, shares: list[tuple[int, float]], folder: Path, series: Series) -> None:
    """Kill runs at instants, given as shares of how long a whole one takes."""
    spec = load_bench(place.bench_file)
    before = machine_state(spec)
    whole_s, facts = whole_run(place, folder / f"{kind}-before", series)
    for number, share in shares:
        where = f"{place.target} {kind} {number}"
        victim = list(Victim)[number % len(Victim)]
        run = Run(place, folder / f"{kind}-{number}")
        killed = run.kill_at(share * whole_s, victim)
        kill = {"kind": kind, "at_s": round(share * whole_s, 2), "victim": victim.value, "killed": killed}
        series.kills.append({**kill, "said": run.last_words()})
        say(f"{where}: {series.kills[-1]}")
        try:
            next_start(place, run, facts, folder, series, where)
        except BenchwrightError as error:
            series.fail(where, f"next start: {error}")
        if changes := machine_state(spec).changes(before):
            series.fail(where, f"of the machine has changed (before, now): {changes}")
        series.done[kind] = series.done.get(kind, 0) + killed


def drawn(seed: int, target: str, kind: str, first: int, count: int) -> list[tuple[int, float]]:
    """Return numbers and shares of a piece of a target's series of kills; the same for the same seed."""
    random = Random(f"{seed} {target} {kind}")
    shares = [random.random() for _ in range(first + count - 1)]
    return list(enumerate(shares, start=1))[first - 1 :]


def measure(bench_file: Path, target: str, options: Options, folder: Path) -> Series:
    """Measure one target."""
    series = Series()
    place = write_bench(bench_file, target, folder)
    if options.repeats:
        repeat(place, options.repeats, folder, series)
    if options.kills:
        shares = drawn(options.seed, target, "kills", options.first, options.kills)
        kill_runs(place, "kills", shares, folder, series)
    if options.standing_kills:
        shares = drawn(options.seed, target, "standing_kills", options.first, options.standing_kills)
        with open_standing(bench_file, target, folder) as standing:
            kill_runs(standing, "standing_kills", shares, folder, series)
    return series


def figures_of(target: str, series: Series) -> dict[str, float]:
    """Return the figures of a target, its name before each."""
    figures: dict[str, float] = {"failures": float(len(series.failures))}
    figures |= {kind: float(count) for kind, count in series.done.items()}
    for what, times_s in series.times_s.items():
        stem = what.removesuffix("_s")
        figures |= {
            f"{stem}_min_s": min(times_s),
            f"{stem}_median_s": statistics.median(times_s),
            f"{stem}_max_s": max(times_s),
        }
    return {f"{target.replace('-', '_')}_{key}": value for key, value in figures.items()}


@takes(
    bench=(VIRTUAL_BENCH, "file of a virtual bench"),
    targets={"nargs": "*", "default": [], "metavar": "NAME", "help": "else all of the bench"},
    repeats=(20, ""),
    kills=(20, ""),
    standing_kills=(20, ""),
    first=(1, "number of the first kill"),
    seed=(1, "of the instants"),
)
def main(options: Options) -> int:
    """Measure the targets, one after the other."""
    targets = options.targets or list(load_bench(options.bench).targets)
    say(f"seed {options.seed}, kills from {options.first}")
    figures: dict[str, float] = {}
    detail: dict[str, Any] = {"seed": options.seed, "first": options.first}
    with tempfile.TemporaryDirectory(prefix="bench-restore-") as name:
        for target in targets:
            folder = Path(name) / target
            folder.mkdir()
            series = measure(options.bench.resolve(), target, options, folder)
            figures |= figures_of(target, series)
            detail[target] = {"times_s": series.times_s, "kills": series.kills, "failures": series.failures}
    bars = {key: Bar(0.0) for key in figures if key.endswith("_failures")}
    return publish("restore", figures, bars, detail)
