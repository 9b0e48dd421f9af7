# SPDX-License-Identifier: Apache-2.0
"""Six programs with one fault each, watched by bw-accel: each is named, none of the repaired."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.targets.record.delayed import FAULTS, named_in
from tests.targets.record.peers import Peer
from tests.targets.windows.watch_lab import RECORD, WATCH, WindowsDisk

pytestmark = [pytest.mark.simulated, pytest.mark.slow]


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Generator[WindowsDisk]:
    """Return a machine that is on."""
    with WindowsDisk(tmp_path_factory.mktemp("delayed")) as made:
        yield made


@pytest.mark.parametrize("program", FAULTS)
def test_the_fault_is_named_and_not_of_the_repaired_program(disk: WindowsDisk, program: str) -> None:
    for option, fault in (([], [FAULTS[program]]), (["repaired"], [])):
        with Peer(program) as peer:
            done = disk.run(*WATCH, "delayed.exe", program, str(peer.port), *option)
        assert (done.returncode, done.stderr) == (0, "")
        assert named_in(disk.tools / RECORD, program, peer.port) == fault
