# SPDX-License-Identifier: Apache-2.0
"""A real `robot` with the listener, whose keywords write to the run folder as those of the project do."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from reports.run.folder import RunFolder

ROOT = Path(__file__).resolve().parents[3]
LIBRARY = '''
"""Keywords that write to the current run folder as the project's libraries do."""
import os, signal
import reports
from reports import *
from reports.record.measurement import utc_now

def record(value=5, requirement="REQ-1", target="linux-rt", stack=None):
    """Record a value against an upper limit of 10 ns."""
    run = reports.current_run()
    file = run.evidence_folder("listener") / "value.txt"
    file.write_text(str(value))
    limit = Limit(10, None, "the test")
    band = Uncertainty.from_parts([UncertaintyPart("resolution", "bound", 1)])
    verdict = judge(int(value), limit, band, n=5, n_required=3, unit="ns")
    run.append(Measurement(
        SCHEMA, run.run_id, "test", requirement, "sync_offset", "max", int(value), "ns", 5, 3, 0, 0, limit,
        band, verdict.margin, RULE, verdict.outcome, verdict.reason, Subject("virtual", target, stack),
        Conditions("ci"), True, (run.evidence(file),), utc_now()))
    if verdict.outcome != "pass":
        raise AssertionError(verdict.message)

def ring():
    """Leave evidence of a ring."""
    from tests.reports.control_loops.ring_sample import write_sample_ring
    write_sample_ring(reports.current_run().evidence_folder("control_loops", "linux-rt"))

def read(path):
    """Read a requirements file as the suites do."""
    from pathlib import Path
    from resources.requirements_file import load_requirements_file
    load_requirements_file(Path(path), "one_way_latency")

def at_the_end(error=""):
    """Ask for something when the run ends; twice, it is done once."""
    from reports.run.current import at_end_of_run
    def give_back():
        with open("given-back.txt", "a") as file:
            file.write("once\\n")
        if error:
            raise RuntimeError(error)
    at_end_of_run(give_back)
    at_end_of_run(give_back)

def spoil(what):
    """Break the run folder in one way."""
    run = reports.current_run()
    if what == "link":
        (run.path / "evidence" / "link").symlink_to("/dev/null")
    elif what == "records":
        (run.path / "measurements.jsonl").write_text("not a record\\n")
    elif what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif what == "kill at the page":
        from reports.page import render
        render.write_page = lambda path: os.kill(os.getpid(), signal.SIGKILL)

def is_interrupted(progress):
    """Be interrupted, as by Ctrl-C, when something was said of the progress."""
    import time
    from resources.keywords.bench import say
    if progress:
        say(progress)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(10)
'''
HEAD = "*** Settings ***\nLibrary    keywords_of_test.py\n\n*** Test Cases ***\n"


@dataclass
class Robot:
    """A folder to run `robot` in, and the results of one execution."""

    folder: Path

    def run(
        self, tests: str, *options: str, named: bool = True, head: str = HEAD
    ) -> subprocess.CompletedProcess[str]:
        """Run tests; returns the process, whose exit code is that of robot."""
        (self.folder / "keywords_of_test.py").write_text(LIBRARY)
        (self.folder / "tests.robot").write_text(head + tests)
        names = ["--variable", "BENCH:hw/benches/virtual.yaml", "--variable", "PROFILE:ci"] if named else []
        listener = [] if "--listener" in options else ["--listener", "reports.listener.Listener"]
        command = [sys.executable, "-m", "robot", *listener, *names, *options, "tests.robot"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(self.folder)])}
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )

    def latest(self) -> RunFolder:
        """Return the run folder that `results/latest` points at."""
        return RunFolder.open(self.folder / "results" / "latest")

    def runs(self) -> list[Path]:
        """Return all run folders."""
        return sorted((self.folder / "results").glob("2*"))
