# SPDX-License-Identifier: Apache-2.0
"""Servers whose time is a known function of this machine's counter, and readers that know it (truth.h)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Self

from hw.tools import BUILD, HOST_BUILD
from tests.patience import HANG_S
from tests.targets.timeservice.windows_programs import NATIVE, TRUTH_READER, Programs

Json = dict[str, Any]
PROGRAMS = BUILD / HOST_BUILD / "tests" / "traffic_gen" / "timeservice"
QUARTZ_PPB, WILD_PPB = 0.3, 100.0
"""Walks of the rate, in ppb a root second: of a quartz at rest, and of one that is far worse."""


def begin_truth(seed: int, walk_ppb_per_sqrt_s: float) -> str:
    """Draw a truth that starts now; return it as servers and readers want it."""
    argv = [str(PROGRAMS / "timeservice-truth-server"), "begin", str(seed), str(walk_ppb_per_sqrt_s)]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


class TruthServer:
    """A server that tells a truth, lies by a constant, or slews within its root distance."""

    def __init__(
        self,
        truth: str,
        address: str = "127.0.0.1",
        ahead_ns: int = 0,
        slew_ppb: int = 0,
        prefix: Sequence[str] = (),
    ) -> None:
        """Start it; `text` is where it serves.

        Args:
            truth: Of `begin_truth`.
            address: With a port, or without: then it is any.
            ahead_ns: By which it is ahead of the truth.
            slew_ppb: At which it slews that away from the first request on, stating what is left as its root
                distance; then it is silent. 0: it stays ahead, and states none.
            prefix: Words of the command before the program.
        """
        program = str(PROGRAMS / "timeservice-truth-server")
        argv = [*prefix, program, "serve", truth, address, str(ahead_ns), str(slew_ppb)]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.text = self.process.stdout.readline().removeprefix("ready ").strip()
        assert self.text, f"{address}: it does not serve"

    def end(self) -> None:
        """End it: from now on it is lost."""
        self.process.kill()
        self.process.wait(HANG_S)
        if self.process.stdout is not None:
            self.process.stdout.close()

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it in any case."""
        self.end()


class TruthReader:
    """A program that reads the time service, and judges each reading by the truth."""

    def __init__(
        self,
        page: Path | IO[bytes],
        truth: str,
        reads: int,
        seconds: int = 0,
        programs: Programs = NATIVE,
    ) -> None:
        """Start it; without seconds it reads as fast as it can.

        Args:
            page: Of the time service; or what another program that reads a clock hands over.
            truth: Of the server.
            reads: Readings.
            seconds: That they are spread over.
            programs: Of which build it is.
        """
        told = None if isinstance(page, Path) else page
        name = programs.page(page) if isinstance(page, Path) else "-"
        argv = [*programs.argv(TRUTH_READER), name, truth, str(reads), str(seconds)]
        self._process = subprocess.Popen(argv, stdin=told, stdout=subprocess.PIPE, text=True)
        self._limit_s = seconds + HANG_S

    def answer(self) -> Json:
        """Return what it has counted."""
        try:
            said, _ = self._process.communicate(timeout=self._limit_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            raise
        assert self._process.returncode == 0, said
        return dict(json.loads(said))


def check_interval(answer: Json) -> None:
    """Check that there were times, and that none had an interval without the truth in it."""
    counts = {name: value for name, value in answer.items() if name != "points"}
    assert answer["reads"] > answer["no_time"], counts
    assert answer["interval_missed"] == 0, counts
