# SPDX-License-Identifier: Apache-2.0
"""A service of RTDiP that has given all that it has."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from targets.embedded.rtdip.python.rtdip import Handle, RtdipError
from tests.patience import HANG_S
from tests.targets.rtdip.lab import RtdipLab, bw_rtdip, ports

PORTS_MAX, HANDLE_PORTS_MAX, RING_MIN_BYTES = 1024, 64, 4096


TAKE_MEMORY = """
import os, sys
from pathlib import Path
from targets.embedded.rtdip.python.rtdip import Handle, RtdipError
os.setgroups([]); os.setgid(65534); os.setuid(65534)
with Handle(Path(sys.argv[1])) as first, Handle(Path(sys.argv[1])) as second:
    first.bind(7000, ring_bytes=64 << 20)
    second.bind(7001, ring_bytes=64 << 20)
    for bound in (first, second):
        try:
            bound.bind(7002, ring_bytes=4096)
        except RtdipError as refused:
            print(refused.name)
    first.unbind(7000)
    second.bind(7002, ring_bytes=4096)
"""


def test_a_user_s_rings_take_so_much_memory_and_no_more(
    repository: Path, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over all handles of the user; what is given back is there again, and root has what it needs."""
    # The user may have no way into the tree: a checkout in the home of root.
    library = repository / ".build" / "linux" / "traffic-gen" / "librtdip.so"
    monkeypatch.setenv("RTDIP_LIBRARY", str(shutil.copy(library, open_folder)))
    with RtdipLab(bw_rtdip(repository), open_folder, "--group", "65534") as lab:
        environment = {**os.environ, "PYTHONPATH": str(repository)}
        argv = [sys.executable, "-c", TAKE_MEMORY, str(lab.folder / lab.far)]
        done = subprocess.run(
            argv, check=False, capture_output=True, text=True, env=environment, timeout=HANG_S
        )
        assert (done.returncode, done.stdout.split()) == (0, ["ENOBUFS", "ENOBUFS"]), done.stderr
        with Handle(lab.folder / lab.far) as of_root:
            for ring_bytes in (64 << 20, 64 << 20, RING_MIN_BYTES):
                of_root.bind(ring_bytes=ring_bytes)


def waits(process: int) -> int:
    """Return how often a process has waited for something."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])


def test_all_ports_that_there_are_are_shown(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole, in one answer; who asks for one more is told that there is none.

    When they are given back at once, others are answered before the kernel has let each of them go.
    """
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
        service = lab.services[lab.far].process.pid
        before = waits(service)
        for handle in handles:
            handle.close()
        assert ports(lab.show(lab.far)) == []
        assert waits(service) - before < PORTS_MAX // 4
        again = [further.bind(port, ring_bytes=RING_MIN_BYTES) for port in given[:HANDLE_PORTS_MAX]]
        assert ports(lab.show(lab.far)) == again
