# SPDX-License-Identifier: Apache-2.0
"""Benchmarks: what is fast, exact or lost, side by side in one run (docs/benchmarks.md).

    python -m bench NAME [OPTION...]    # bench/FOLDER/bench_NAME.py; without a name: all names

lab         what they share: turns, results, namespaces, compilers, runs that are killed
traffic     bw-traffic: schedule, overhead, scale, memory
userstack   the user-mode stack and ways for packets
clocks      the time service and the tools that compare clocks
analysis    edges in samples, stability of clocks
paths       what the router does on the wire
timeline    places of events on one timeline
verdicts    how often a verdict is wrong, and what `verify` notices
dashboards  reports, delivery, dashboards, trends, the adviser
targets     whole qualifications, restoring a target, power cuts
"""

from __future__ import annotations

import sys
from pathlib import Path

_PREFIX = "bench_"


def _refuse_file_as_program() -> None:
    """End with code 2 where the program is a benchmark's file: it only defines `main`, and would do nothing.

    Whichever way it was started, it comes through here: as a module by its package, as a file by its imports.
    """
    if sys.argv[:1] == ["-m"]:  # so long as Python looks for the module; its name stands before its arguments
        started = sys.orig_argv[-len(sys.argv)].removeprefix("-m").rpartition(".")[2]
    else:
        started = Path(sys.argv[0]).stem if sys.argv and sys.argv[0].endswith(".py") else ""
    if started.startswith(_PREFIX):
        name = started.removeprefix(_PREFIX).replace("_", "-")
        print(f"bench: a benchmark is run by its name: python -m bench {name}", file=sys.stderr)
        raise SystemExit(2)


_refuse_file_as_program()
