# SPDX-License-Identifier: Apache-2.0
"""The command of experiments as a process of its own that need not import its modules: they take 1.3 s.

It is forked off a process that has imported them and done nothing else. Exit code, stdout and stderr are as
of `python -m resources.experiment`, by which those tests run it that disturb it.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.patience import HANG_S

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    ["resources.experiment.__main__", "hw.session", "resources.experiment.run", "reports.experiments.page"]
)


def run_warm(words: Sequence[str], folder: Path, settle_s: float | None) -> subprocess.CompletedProcess[str]:
    """Run the command to its end.

    Args:
        words: Of its command line.
        folder: It works there.
        settle_s: So long what was not there before a point may end by itself; None: as anywhere.
    """
    with tempfile.TemporaryDirectory() as kept:
        out, err = Path(kept, "out"), Path(kept, "err")
        process = _CONTEXT.Process(target=_main, args=(words, folder, settle_s, dict(os.environ), out, err))
        process.start()
        process.join(HANG_S)
        if process.is_alive():
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired([*words], HANG_S, out.read_bytes(), err.read_bytes())
        assert process.exitcode is not None
        return subprocess.CompletedProcess([*words], process.exitcode, out.read_text(), err.read_text())


def _main(
    words: Sequence[str],
    folder: Path,
    settle_s: float | None,
    environment: Mapping[str, str],
    out: Path,
    err: Path,
) -> None:
    for number, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1, closefd=False) for number in (1, 2))
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    from resources.experiment import node_state
    from resources.experiment.__main__ import main

    if settle_s is not None:
        node_state.SETTLE_S = settle_s
    sys.exit(main([*words]))
