# SPDX-License-Identifier: Apache-2.0
"""Experiments of many machines in one file: `python -m resources.experiment VERB FILE`.

check   read the file, with all that it includes, at each of its points; nothing is started
plan    print who does what when, and how long it takes at most
run     open the bench and measure all points; a new folder keeps file, plan, versions and data
resume  go on in the folder of an experiment that was broken off, at its next point
page    write the page of a folder again: schedule, conditions asked and achieved
reset   undo what an experiment that was killed has left on the bench

Exit codes: 0 done; 2 bad input; 3 the bench lacks something; 4 a component failed, a threshold was not
reached, or Ctrl-C; 5 the bench is at fault, or a node is not as it was. See docs/experiments.md.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from hw.errors import BenchError, BenchwrightError, ConfigError, MeasurementError
from resources.experiment.experiment_file import ExperimentFile, read_experiment_file
from resources.experiment.folder import EXPERIMENT, ExperimentFolder
from resources.experiment.plan import plan_text

RESULTS = Path("results/experiments")
ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(arguments: list[str] | None = None) -> int:
    """Do what is asked for; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m resources.experiment",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name, (_, about) in VERBS.items():
        verb = verbs.add_parser(name, help=about, description=about)
        verb.add_argument("file", type=Path, metavar="FILE", help="the experiment, TOML")
        verb.add_argument(
            "--bench", type=Path, metavar="FILE", help="in place of the bench that the experiment names"
        )
        if name == "run":
            verb.add_argument(
                "--output", type=Path, metavar="FOLDER", help=f"new folder (default: {RESULTS}/NAME-DATE)"
            )
    given = parser.parse_args(arguments)
    try:
        VERBS[given.verb][0](given)
    except BenchwrightError as error:
        print(f"experiment: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"experiment: {error.filename or given.file}: {error.strerror}", file=sys.stderr)
        return BenchError.exit_code
    except KeyboardInterrupt:
        print("experiment: broken off; what was measured is kept, the nodes were reset", file=sys.stderr)
        return MeasurementError.exit_code
    return 0


def _check(given: argparse.Namespace) -> None:
    experiment = read_experiment_file(given.file, given.bench)
    print(f"{given.file}: {len(experiment.points)} points on bench {experiment.bench.name}")


def _plan(given: argparse.Namespace) -> None:
    sys.stdout.write(plan_text(read_experiment_file(given.file, given.bench)))


def _run(given: argparse.Namespace) -> None:
    experiment = read_experiment_file(given.file, given.bench)
    path = given.output or RESULTS / f"{experiment.name}-{time.strftime('%Y%m%d-%H%M%S')}"
    _measure(experiment, ExperimentFolder.create(path, experiment))


def _resume(given: argparse.Namespace) -> None:
    if given.file.name != EXPERIMENT:
        raise ConfigError(f"{given.file}: must be the {EXPERIMENT} of a folder that `run` has made")
    folder, experiment = ExperimentFolder.reopen(given.file.parent, given.bench)
    _measure(experiment, folder)


def _measure(experiment: ExperimentFile, folder: ExperimentFolder) -> None:
    from hw.session import open_bench  # needs the Python environment, and root; check and plan do without
    from resources.experiment.run import ExperimentRun

    done = folder.done()
    points = [point for point in experiment.points if point.number not in done]
    if not points:
        with open_bench(Path(str(experiment.table["bench"]))):
            pass  # the controller may have been killed behind its last point: that is undone
        print(f"{folder.path}: all {len(experiment.points)} points are complete")
        return
    try:
        signals = _Signals()
        with open_bench(Path(str(experiment.table["bench"]))) as bench:
            run = ExperimentRun(experiment, folder, bench, _say, signals.deferred)
            run.power_on()
            for line in folder.keep_versions(run.versions()):
                _say(f"changed since the experiment began: {line}")
            run.measure(points)
    finally:
        page = _write_page(folder.path)
    _tell(f"{folder.path}: {len(experiment.points)} points\n{page}")


def _write_page(folder: Path) -> str:
    """Write the page of what there is; it never hides why there is no more."""
    from reports.errors import ReportError
    from reports.experiments.page import write_experiment_page

    try:
        return str(write_experiment_page(folder))
    except (ReportError, OSError) as error:
        return f"no page: {error}"


def _page(given: argparse.Namespace) -> None:
    if given.file.name != EXPERIMENT:
        raise ConfigError(f"{given.file}: must be the {EXPERIMENT} of a folder that `run` has made")
    print(_write_page(given.file.parent))


def _reset(given: argparse.Namespace) -> None:
    from hw.session import open_bench
    from resources.experiment.run import reset_nodes

    experiment = read_experiment_file(given.file, given.bench)
    with open_bench(Path(str(experiment.table["bench"]))) as bench:  # undoes what is this machine's
        nodes = reset_nodes(experiment, bench)
    print(f"bench {experiment.bench.name}: {', '.join(nodes)} reset")


VERBS: dict[str, tuple[Callable[[argparse.Namespace], None], str]] = {
    "check": (_check, "read the file at each of its points; nothing is started"),
    "plan": (_plan, "print who does what when, and how long it takes at most"),
    "run": (_run, "measure all points, into a new folder"),
    "resume": (_resume, "go on in the folder of an experiment that was broken off"),
    "page": (_page, "write the page of a folder again"),
    "reset": (_reset, "undo what an experiment that was killed has left on the bench"),
}


def _say(line: str) -> None:
    _tell(f"{time.strftime('%H:%M:%S')} {line}")


def _tell(line: str) -> None:
    """Print a line where somebody reads: the terminal may be closed, or `head` have seen enough."""
    try:
        print(line, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Signals:
    """The first signal that asks for the end is a KeyboardInterrupt; those after it change nothing."""

    def __init__(self) -> None:
        """Take the signals."""
        self._is_deferred = self._is_pending = False
        for number in ENDING_SIGNALS:
            # Who ignores SIGHUP, as under nohup, goes on when the terminal is closed.
            if not (number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN):
                signal.signal(number, self._end)

    @contextmanager
    def deferred(self) -> Generator[None, None, None]:
        """Have a signal count at the end of the context."""
        self._is_deferred = True
        try:
            yield
        finally:
            self._is_deferred = False
        if self._is_pending:
            self._is_pending = False
            raise KeyboardInterrupt

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        for number in ENDING_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        if self._is_deferred:
            self._is_pending = True
            return
        raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
