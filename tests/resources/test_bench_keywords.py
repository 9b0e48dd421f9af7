# SPDX-License-Identifier: Apache-2.0
"""A bench is closed whatever fails on the way."""

from __future__ import annotations

import errno
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from robot.api import Error

from resources.keywords import bench as keywords
from resources.keywords.bench import BenchLibrary


def test_a_full_disk_does_not_keep_the_bench_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """The consoles cannot be kept: that is said, and the bench is closed all the same."""

    def evidence_folder(*names: str) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device", "/".join(names))

    closed: list[str] = []
    stack = ExitStack()
    stack.callback(closed.append, "bench")
    library: Any = BenchLibrary()
    library._stack = stack
    library._bench = SimpleNamespace(
        spec=SimpleNamespace(labgrid_targets={"board": {}}),
        console="Booting Linux {}".format,
        instruments=dict,
    )
    run = SimpleNamespace(evidence_folder=evidence_folder, update=dict)
    monkeypatch.setattr(keywords, "open_run", lambda: run)
    monkeypatch.setattr(keywords, "current_run", lambda: run)
    with pytest.raises(Error, match=r"BENCH ERROR: .*No space left on device"):
        library.close_bench()
    assert closed == ["bench"]
    library.close_bench()  # harmless
