# SPDX-License-Identifier: Apache-2.0
"""A qualification of the night, and its run judged again.

    python -m tests.night.qualify RUN_FILE OPTION...

Options are those of `resources.qualify`, which writes the path of the run folder to RUN_FILE.

Exit codes: those of `resources.qualify`; 1 where `python -m reports verify` refuses a run
that came to 0 or 4.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

from tests.night.names import first_line

FAILED = 1
REFUSABLE = (0, 4)
"""Exit codes of runs that have to stand: any other is red by itself."""
Run = Callable[[Sequence[str]], int]


def qualify(run_file: Path, options: Sequence[str], run: Run) -> int:
    """Qualify, judge the run again where there is one, and return the exit code.

    Args:
        run_file: Gets the path of the run folder.
        options: Of `resources.qualify`.
        run: Runs a module with its arguments and returns its exit code.
    """
    code = run(("resources.qualify", "--run-file", str(run_file), *options))
    folder = first_line(run_file)
    if not folder or run(("reports", "verify", folder)) == 0:
        return code
    print(f"qualify: refused by verify: {folder}", flush=True)
    return FAILED if code in REFUSABLE else code


def _run(module: Sequence[str]) -> int:
    return subprocess.Popen([sys.executable, "-m", *module]).wait()


def _wait_on(_number: int, _frame: FrameType | None) -> None:
    """Take a signal; ignored, it would be so in the programs too."""


def main(arguments: Sequence[str]) -> int:
    """Return the exit code; signals go to the whole group, and the programs that run end by them."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _wait_on)
    return qualify(Path(arguments[0]), arguments[1:], _run)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
