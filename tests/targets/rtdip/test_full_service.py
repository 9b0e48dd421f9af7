# SPDX-License-Identifier: Apache-2.0
"""A service of RTDiP that has given all that it has."""

from __future__ import annotations

import contextlib
import errno
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


TAKE_ALL = """
import os, socket, struct, sys
os.setgroups([]); os.setgid(1234); os.setuid(1001)
def connect():
    made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); made.connect(sys.argv[1]); return made
def result(made, verb, port=0):
    try:
        made.send(struct.pack("=IIHH", verb, 4096, port, 1))
        data, descriptors, _, _ = socket.recv_fds(made, 2**19, 2)
    except ConnectionError:
        return None
    for each in descriptors: os.close(each)
    return struct.unpack_from("=i", data)[0] if data else None
HELLO, BIND, SHOW = 0, 1, 3
ports = [result(one, BIND, 2000 + i) for one in [connect()] for i in range(514)]
print(*(each for each in ports if each < 0))
handles = [connect() for _ in range(242)]
print(*(each for each in (result(one, HELLO) for one in handles) if each))
shown = result(connect(), SHOW)
idle = [connect() for _ in range(1024)]
print(shown, result(idle[-1], SHOW), flush=True)
sys.stdin.read()
"""


def test_a_user_has_so_much_of_a_service_and_no_more(
    repository: Path, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ports, handles and connections, however idle: root is served, and `show` has what handles leave."""
    monkeypatch.setenv("RTDIP_LIBRARY", str(repository / ".build" / "linux" / "traffic-gen" / "librtdip.so"))
    with RtdipLab(bw_rtdip(repository), open_folder, "--group", "1234") as lab:
        argv = ["prlimit", "--nofile=4096:4096", sys.executable, "-c", TAKE_ALL, str(lab.folder / lab.far)]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            refused = str(-errno.EDQUOT)
            lines = [process.stdout.readline().split() for _ in range(3)]
            assert lines == [[refused] * 2, [refused] * 2, ["0", "None"]]
            with Handle(lab.folder / lab.far) as of_root:
                own_port = of_root.bind(ring_bytes=RING_MIN_BYTES)
                assert own_port in ports(lab.show(lab.far))
        said = lab.services[lab.far].errors()
        for what, count in (("ports", 512), ("handles", 240), ("connections", 256)):
            assert said.count(f"user 1001 has no more {what}: {count} in use") == 1
