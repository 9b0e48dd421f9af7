# SPDX-License-Identifier: Apache-2.0
"""A service of RTDiP that has given all that it has."""

from __future__ import annotations

import contextlib
import json
import subprocess
from pathlib import Path

import pytest

from targets.embedded.rtdip.python.rtdip import Handle, RtdipError
from tests.patience import HANG_S
from tests.targets.rtdip.lab import RtdipLab, bw_rtdip, ports

PORTS_MAX, HANDLE_PORTS_MAX, RING_MIN_BYTES = 1024, 64, 4096


def test_all_ports_that_there_are_are_shown(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole, in one answer; who asks for one more is told that there is none."""
    library = repository / ".build" / "linux" / "traffic-gen" / "librtdip.so"
    monkeypatch.setenv("RTDIP_LIBRARY", str(library))
    with RtdipLab(bw_rtdip(repository), tmp_path) as lab, contextlib.ExitStack() as held:
        handles = [
            held.enter_context(Handle(lab.folder / lab.far)) for _ in range(PORTS_MAX // HANDLE_PORTS_MAX)
        ]
        given = [
            handle.bind(ring_bytes=RING_MIN_BYTES) for handle in handles for _ in range(HANDLE_PORTS_MAX)
        ]
        argv = [str(lab.program), "show", *lab.socket_of(lab.far)]
        shown = subprocess.run(argv, check=True, capture_output=True, timeout=HANG_S)
        assert ports(json.loads(shown.stdout)) == given
        further = held.enter_context(Handle(lab.folder / lab.far))
        with pytest.raises(RtdipError, match="ENOSPC"):
            further.bind(ring_bytes=RING_MIN_BYTES)
