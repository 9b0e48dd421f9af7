# SPDX-License-Identifier: Apache-2.0
"""The main job: run the suites on a bench, and say in one exit code how it came out.

    python -m resources.qualify --bench FILE --profile quick --suite robot/daq_replay -- --variable
    PHASE:staggered

It is a thin layer over `robot`: what stands behind `--` goes to Robot Framework as it is. Exit codes:
docs/exit-codes.md.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO

from hw.bench import BenchSpec, load_bench
from hw.errors import BenchwrightError, CapabilityError, ConfigError
from hw.reservation import reserve
from hw.scratch import remove_orphans, scratch_folder
from hw.virtual.prepare import missing, prepare
from reports.errors import ReportError
from reports.run.folder import RESULTS, RunFolder
from reports.run.outcome import (
    BAD_INPUT,
    BENCH_FAULT,
    FAIL,
    NEXT_STEPS,
    NO_CAPABILITY,
    NO_VERDICT,
    PASS,
    RunOutcome,
    outcome_of,
)
from reports.run.selected import unmeasured
from resources.every_target import NETWORK_STACKS, TARGETS, load_kind_suites, require_stacks
from resources.keep_run import keep_run
from resources.profiles import load_profile

# Robot Framework's own exit codes: its user guide, "Return codes".
ROBOT_BAD_INPUT = 252
ROBOT_INTERRUPTED = 253
ROBOT_FILES = Path(".build", "robot")
"""By bench: Robot Framework's own files of its last run, which stay where Robot says that they are."""
RUN_FILE = "run-folder.txt"
"""Into it the listener writes which run folder is this run's own."""

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""An interrupt, the end of a job, a terminal that is closed: each closes the bench and saves the run."""

_RELAY_BYTES = 65_536
_NAMES_TARGET = re.compile(r"(--variable=)?TARGET:")
_NAMES_STACK = re.compile(r"(--variable=)?STACK:")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        spec = load_bench(options.bench)
        load_profile(options.profile)
        targets = chosen_targets(spec, options.targets, options.robot, options.profile)
        require_suite(options.suite)
        require_one_choice(options.stacks, options.robot)
        require_stacks((spec.targets[name].provisioning for name in targets), options.stacks)
        require_root(spec)
        require_free(spec)
    except BenchwrightError as error:
        print(f"qualify: {error}", file=sys.stderr)
        return error.exit_code
    others = [name for name in spec.targets if name not in targets]
    if others and not named_targets(options.targets, options.robot):
        print(f"profile {options.profile} takes only by name (TARGETS=NAME): {', '.join(others)}", flush=True)
    try:
        prepare(missing(spec, targets))
    except BenchwrightError as error:
        print(f"qualify: {error}", file=sys.stderr)
        return error.exit_code
    remove_orphans()
    with scratch_folder() as outputs:
        named = [f"profile={options.profile}"]
        named += [f"{name}@{spec.targets[name].provisioning}" for name in targets]
        named += [NETWORK_STACKS + ",".join(options.stacks)] if options.stacks else []
        run_file: Path = (options.run_file or Path(outputs, RUN_FILE)).absolute()
        run_file.unlink(missing_ok=True)
        code = _run_robot(options, named, ROBOT_FILES.absolute() / spec.name, run_file)
        run = _told_run(run_file)
    broken_off = {ROBOT_BAD_INPUT: BAD_INPUT, ROBOT_INTERRUPTED: NO_VERDICT}.get(code, BENCH_FAULT)
    if run is None:
        print("qualify: no run folder was written", file=sys.stderr)
        return broken_off
    try:
        folder = RunFolder.open(run)
        if not folder.finalised:
            print(f"qualify: {run}: not finalised; `python -m reports finish {run}`", file=sys.stderr)
            return broken_off
        came_out = outcome_of(folder)
    except ReportError as error:
        print(f"qualify: {error}", file=sys.stderr)
        return BENCH_FAULT
    result = exit_code(code, came_out, require_all=options.require_all == "yes")
    kept = keep_run(run, options.results)
    if kept.problem:
        print(f"qualify: {kept.problem}", file=sys.stderr)
    _summarise(folder, came_out, result, kept.advice)
    return result


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m resources.qualify",
        description=(__doc__ or "").split("\n")[0],
        allow_abbrev=False,
    )
    parser.add_argument("--bench", type=Path, default=Path("hw/benches/virtual.yaml"), help="bench file")
    parser.add_argument(
        "--profile",
        default="quick",
        help="quick (seven minutes), ci (half an hour), nightly (hours), acceptance (many hours), "
        "soak (days)",
    )
    parser.add_argument("--suite", type=Path, default=Path("robot"), help="folder or file of suites")
    parser.add_argument(
        "--targets",
        nargs="*",
        default=[],
        metavar="NAME",
        help="targets of the bench file, one after the other; else all of them, but for kinds that the"
        " profile takes only by name (only_by_name in targets/KIND/suites.toml)",
    )
    parser.add_argument(
        "--stacks",
        nargs="*",
        default=[],
        metavar="NAME",
        help="network stacks, files of targets/KIND/stack: suites that use one run with each; else `kernel`",
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="where run folders go")
    parser.add_argument(
        "--earlier",
        type=Path,
        nargs="*",
        default=[],
        help="run folders of earlier attempts, to be listed in the report",
    )
    parser.add_argument(
        "--run-file", type=Path, metavar="FILE", help="gets the path of the run folder, once it is there"
    )
    parser.add_argument(
        "--require-all",
        choices=("yes", "no"),
        default="no",
        help="yes: end with 4 where all passed that was measured, but less was measured than asked",
    )
    parser.add_argument("robot", nargs="*", help="options for Robot Framework, behind --")
    return parser


def chosen_targets(
    spec: BenchSpec, names: Sequence[str], robot: Sequence[str] = (), profile: str = ""
) -> tuple[str, ...]:
    """Return the targets of a run in the order of the bench file.

    Where none is named, all but those of kinds that the profile takes only by name; all, of a bench that has
    no others.

    Args:
        spec: The bench.
        names: Those that were asked for.
        robot: Options for Robot Framework: `--variable TARGET:NAME` names one too.
        profile: Of the run.

    Raises:
        ConfigError: The bench has no such target, or a kind's `suites.toml` is wrong.
    """
    wanted = named_targets(names, robot)
    if unknown := sorted(wanted - set(spec.targets)):
        there = ", ".join(spec.targets)
        raise ConfigError(f"{spec.path}: benchwright.targets: no target {unknown[0]!r}; there are: {there}")
    kinds = {
        name: load_kind_suites(TARGETS / name, spec.targets[name].provisioning, profile)
        for name in spec.targets
        if name in wanted or not wanted
    }
    taken = [name for name, kind in kinds.items() if wanted or not kind.profile.only_by_name]
    return tuple(taken or kinds)


def named_targets(names: Sequence[str], robot: Sequence[str]) -> set[str]:
    """Return the targets that a run names, by itself and by Robot Framework's options."""
    return {*names, *(option.rpartition("TARGET:")[2] for option in robot if _NAMES_TARGET.match(option))}


def given_variables(robot: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield names and values of the variables that Robot Framework's options set."""
    for option, following in zip(robot, [*robot, ""][1:], strict=True):
        joined = option.startswith("--variable=")
        if joined or option in ("--variable", "-v"):
            name, _, value = (option.partition("=")[2] if joined else following).partition(":")
            if name and value:
                yield name, value


def require_one_choice(stacks: Sequence[str], robot: Sequence[str]) -> None:
    """Refuse network stacks that are named twice: a variable of the command line would go before `--stacks`.

    Raises:
        ConfigError: Options for Robot Framework name one, too.
    """
    if stacks and any(map(_NAMES_STACK.match, robot)):
        raise ConfigError(f"--stacks {' '.join(stacks)}: and `--variable STACK:…` besides; name them once")


def require_suite(suite: Path) -> None:
    """Refuse a suite that is not there, before anything is started.

    Raises:
        ConfigError: It is no `.robot` file, and no folder with one.
    """
    if suite.suffix == ".robot" and suite.is_file():
        return
    if not any(suite.rglob("*.robot")):
        raise ConfigError(f"--suite {suite}: must be a .robot file, or a folder with some")


def require_root(spec: BenchSpec) -> None:
    """Refuse a virtual bench to a user who cannot build it.

    Raises:
        CapabilityError: The user is not root.
    """
    if os.geteuid() != 0 and spec.virtual is not None:
        raise CapabilityError("a virtual bench needs root: it makes network namespaces")


def require_free(spec: BenchSpec) -> None:
    """Say that a bench is held, once, instead of in every suite.

    Raises:
        BenchError: Who holds it.
    """
    with reserve(spec.name):
        pass


def _run_robot(options: argparse.Namespace, targets: Sequence[str], folder: Path, run_file: Path) -> int:
    """Run Robot Framework: it closes the bench after an interrupt, and does not outlive this process."""
    listener = ["reports.listener.Listener", f"results={options.results}", f"tell={run_file}"]
    if options.earlier:
        listener.append("earlier=" + ",".join(str(path) for path in options.earlier))
    variables = [f"{name}={value}" for name, value in given_variables(options.robot) if name != "TARGET"]
    command = [
        *("setpriv", "--pdeathsig", "KILL"),
        *(sys.executable, "-m", "robot", "--pythonpath", ".", "--console", "verbose"),
        *("--listener", ";".join(listener), "--listener", f"resources.pace.Pace;{options.profile}"),
        *("--variable", f"BENCH:{options.bench}", "--variable", f"PROFILE:{options.profile}"),
        *("--prerunmodifier", ":".join(["resources.every_target.EveryTarget", *targets])),
        *("--prerunmodifier", ";".join(["resources.requirement_tests.RequirementTests", *variables])),
        *("--outputdir", str(folder), "--xunit", "xunit.xml"),
        *("--consolecolors", "on" if sys.stdout.isatty() else "off"),
        *options.robot,
        str(options.suite),
    ]
    # A session of its own: an interrupt of the terminal comes to this process alone and is handed on once. A
    # second one ends Robot at once; the next start then fixes what is left. Nor does Robot write to the
    # terminal itself, which may be closed before the run is over.
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    relays = relay(process)
    handed_on: list[int] = []

    def hand_on(number: int, _frame: object) -> None:
        handed_on.append(number)
        say_on(sys.stderr, "qualify: interrupted: closing the bench and saving what was measured")
        process.send_signal(signal.SIGTERM if number == signal.SIGHUP else number)

    # Who ignores SIGHUP, as under nohup, goes on when the terminal is closed.
    ending = [number for number in ENDING_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, hand_on) for number in ending}
    try:
        code = process.wait()
        for each in relays:
            each.join()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    # Robot's own code counts the tests that an interrupt has ended as failed.
    return ROBOT_INTERRUPTED if handed_on else code


def relay(process: subprocess.Popen[bytes]) -> tuple[threading.Thread, threading.Thread]:
    """Write what a process prints to this one's outputs; what nobody reads any more is dropped."""
    assert process.stdout is not None
    assert process.stderr is not None

    def copy(source: BinaryIO, output: TextIO) -> None:
        for chunk in iter(lambda: os.read(source.fileno(), _RELAY_BYTES), b""):
            with _to_nobody(output):
                output.buffer.write(chunk)
                output.flush()

    pairs = ((process.stdout, sys.stdout), (process.stderr, sys.stderr))
    threads = [threading.Thread(target=copy, args=pair, daemon=True) for pair in pairs]
    for thread in threads:
        thread.start()
    return threads[0], threads[1]


def say_on(output: TextIO, text: str) -> None:
    """Print a line to an output that may be gone."""
    with _to_nobody(output):
        print(text, file=output, flush=True)


@contextmanager
def _to_nobody(output: TextIO) -> Generator[None]:
    """Drop what is written to a closed terminal, or to a reader that has seen enough, from then on."""
    try:
        yield
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())


def exit_code(robot_code: int, came_out: RunOutcome, *, require_all: bool = False) -> int:
    """Return the exit code of a run.

    Args:
        robot_code: Robot Framework's: it decides only where the run passed and Robot did not end well.
        came_out: How the run came out.
        require_all: Of a run that passed with less measured than asked, the code is that of no verdict.
    """
    if require_all and came_out.exit_code == PASS and unmeasured(came_out.states):
        return NO_VERDICT
    if came_out.exit_code != PASS or robot_code == 0:
        return came_out.exit_code
    return NO_VERDICT if robot_code == ROBOT_INTERRUPTED else BENCH_FAULT


def _told_run(file: Path) -> Path | None:
    """Return the folder of the run that `_run_robot` has started, from the run itself; None: it has none."""
    return Path(file.read_text().rstrip("\n")) if file.exists() else None


def _summarise(run: RunFolder, came_out: RunOutcome, code: int, advice: str) -> None:
    words = {
        PASS: "PASS",
        FAIL: "FAIL",
        BAD_INPUT: "BAD INPUT",
        NO_CAPABILITY: "NOT CAPABLE",
        NO_VERDICT: "NO VERDICT",
        BENCH_FAULT: "BENCH FAULT",
    }
    counts = ", ".join(f"{count} {outcome}" for outcome, count in came_out.counts.items() if count)
    less = unmeasured(came_out.states)
    marked = " (SIMULATED)" if run.manifest.simulated else ""
    say_on(
        sys.stdout,
        f"Verdict: {words[code]}{marked}: {counts or 'no measurement'}{f'; {less}' if less else ''}",
    )
    for reason in (*came_out.missed, *came_out.reasons):
        say_on(sys.stdout, f"         {reason}")
    if advice:
        say_on(sys.stdout, f"History: {advice}")
    say_on(sys.stdout, f"Report:  {run.path / 'qualification.html'}")
    if code != PASS:
        say_on(sys.stdout, f"Next:    what did not pass stands under its verdict; what to do: {NEXT_STEPS}")


if __name__ == "__main__":
    sys.exit(main())
