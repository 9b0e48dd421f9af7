# SPDX-License-Identifier: Apache-2.0
"""A signal while nodes are reset counts afterwards; those after the first change nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import HANG_S

SCRIPT = """
import os, signal
from resources.experiment.__main__ import _Signals

signals = _Signals()
try:
    with signals.deferred():
        os.kill(os.getpid(), NUMBER)
        print("reset")
    print("never")
except KeyboardInterrupt:
    os.kill(os.getpid(), NUMBER)
    print("ended")
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_waits_for_the_reset(repository: Path, number: signal.Signals) -> None:
    script = SCRIPT.replace("NUMBER", str(int(number)))
    done = subprocess.run(
        ["env", "--default-signal", sys.executable, "-c", script],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "reset\nended\n", "")
