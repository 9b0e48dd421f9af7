# SPDX-License-Identifier: Apache-2.0
"""Six programs with one fault each, on Linux: each is named from the record, none of the repaired."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.patience import HANG_S
from tests.targets.record.delayed import FAULTS, named_in
from tests.targets.record.peers import Peer
from tests.targets.record.test_recorder import RECORDER

pytestmark = [pytest.mark.simulated, pytest.mark.slow]


@pytest.mark.parametrize("program", FAULTS)
def test_the_fault_is_named_and_not_of_the_repaired_program(
    repository: Path, tmp_path: Path, program: str
) -> None:
    build = repository / ".build/linux"
    for option, fault in (([], [FAULTS[program]]), (["repaired"], [])):
        file = tmp_path / f"record{len(option)}.ndjson"
        environment = {**os.environ, "LD_PRELOAD": str(build / RECORDER), "BW_RECORD": str(file)}
        with Peer(program) as peer:
            argv = [str(build / "tests/targets/record/delayed"), program, str(peer.port), *option]
            subprocess.run(argv, env=environment, check=True, timeout=HANG_S)
        assert named_in(file, program, peer.port) == fault
