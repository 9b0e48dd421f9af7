# SPDX-License-Identifier: Apache-2.0
"""A component that keeps data in each phase, and breaks in one of them, in the way that it is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import Any

from bwphase import Phases

phases = Phases()


def broken(how: str) -> None:
    """Break; return where there is nothing to break."""
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "hangs":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        subprocess.Popen(["sleep", "10000"], start_new_session=True)  # it is not the only one that stays
        time.sleep(10_000)
    elif how == "exits":
        os._exit(1)
    elif how == "floods":
        while True:
            os.write(2, b"too much\n" * 1000)
    elif how == "disk-full":
        with open("data", "ab") as file:  # noqa: PTH123 - as a plain program does
            while True:
                file.write(b"x" * 65536)
                file.flush()


def work(parameters: dict[str, Any]) -> None:
    """Keep that the phase was reached, then break where that is asked for."""
    with open("data", "a") as file:  # noqa: PTH123 - as a plain program does
        file.write(f"{parameters['phase']}\n")
    broken(parameters.get("fault", ""))


for each in ("prepare", "work", "finish"):
    phases.phase(each)(work)

if __name__ == "__main__":
    with open("data", "a") as begun:  # noqa: PTH123 - as a plain program does
        begun.write("start\n")
    broken(sys.argv[1] if len(sys.argv) > 1 else "")
    sys.exit(phases.run())
