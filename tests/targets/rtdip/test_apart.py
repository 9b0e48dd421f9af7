# SPDX-License-Identifier: Apache-2.0
"""Two processes of two users that have ports: neither reads what is for the other, whatever it tries."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import HANG_S
from tests.targets.bpf_objects import held_by
from tests.targets.rtdip.lab import RtdipLab, bw_rtdip
from tests.traffic_gen.lab import Tool

GROUP, FIRST, SECOND, PORT = 65533, 65532, 65531, 7000

INTRUDER = """
import array, ctypes, errno, json, os, socket, struct, sys
path, pid, ring, own = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
HELLO, BIND, UNBIND, PORT = 0, 1, 2, 7000
libc = ctypes.CDLL(None, use_errno=True)
said = {}

def ask(verb, port=0):
    service.send(struct.pack("IIHH", verb, 4096, port, 1))
    data, descriptors, _, _ = socket.recv_fds(service, 4096, 4)
    return struct.unpack_from("i", data)[0], descriptors

def name(call):
    try:
        return call() or "done"
    except OSError as error:
        return errno.errorcode[error.errno]

def system_call(*arguments):
    result = libc.syscall(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), "")

service = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
service.connect(path)
result, (sending,) = ask(HELLO)
packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, fileno=sending)
for verb, what in ((BIND, "bind"), (UNBIND, "unbind")):
    result, descriptors = ask(verb, PORT)
    said[what] = errno.errorcode[-result]
    said[what + " gives"] = len(descriptors)
by_id = ctypes.create_string_buffer(struct.pack("I", ring), 128)
bpf = 321 if os.uname().machine == "x86_64" else 280
said["map by its id"] = name(lambda: system_call(bpf, 14, by_id, 128))
pidfd = os.pidfd_open(pid)
said["its descriptor"] = name(lambda: system_call(438, pidfd, own, 0))
said["descriptor in proc"] = name(lambda: os.open(f"/proc/{pid}/fd/{own}", os.O_RDWR))
said["memory"] = name(lambda: os.open(f"/proc/{pid}/mem", os.O_RDONLY))
# The socket that sends: let it take whatever comes and goes.
SO_ATTACH_FILTER, SO_DETACH_FILTER, ETH_P_ALL = 26, 27, 3
said["no filter"] = name(lambda: packets.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0))
all_of_it = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x40000))
program = struct.pack("HP", 1, ctypes.addressof(all_of_it))
said["another filter"] = name(lambda: packets.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program))
said["listen to all"] = name(lambda: packets.bind((sys.argv[5], ETH_P_ALL)))
print(json.dumps(said), flush=True)
sys.stdin.readline()
packets.setblocking(False)
print(json.dumps({"read": name(lambda: packets.recv(2000).hex())}), flush=True)
"""


@pytest.fixture
def lab(repository: Path, open_folder: Path) -> Iterator[RtdipLab]:
    with RtdipLab(bw_rtdip(repository), open_folder, "--group", str(GROUP)) as made:
        yield made


def as_user(number: int) -> list[str]:
    return ["setpriv", "--reuid", str(number), "--regid", str(GROUP), "--clear-groups"]


def test_a_process_does_not_read_the_port_of_another(lab: RtdipLab) -> None:
    place = ["--local", str(PORT), *lab.socket_of(lab.far)]
    argv = [*as_user(FIRST), str(lab.program), "echo", *place]
    owner = Tool(lab.far, Path(argv[0]), argv[1:], lab.folder / "owner.ndjson", {})
    intruder = None
    try:
        owner.wait_ready()
        (ring,) = held_by(owner.process.pid, "map")
        (own,) = (
            each.name
            for each in Path("/proc", str(owner.process.pid), "fd").iterdir()
            if str(each.readlink()) == "anon_inode:bpf-map"
        )
        arguments = [str(lab.folder / lab.far), str(owner.process.pid), str(ring), own, "r0"]
        intruder = subprocess.Popen(
            [*as_user(SECOND), sys.executable, "-c", INTRUDER, *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert intruder.stdout
        assert json.loads(intruder.stdout.readline()) == {
            "bind": "EADDRINUSE",
            "bind gives": 0,
            "unbind": "EINVAL",
            "unbind gives": 0,
            "map by its id": "EPERM",
            "its descriptor": "EPERM",
            "descriptor in proc": "EACCES",
            "memory": "EACCES",
            "no filter": "EPERM",
            "another filter": "EPERM",
            "listen to all": "done",
        }
        peer = ["--peer", f"{lab.mac(lab.far)}/{PORT}", "--count", "20", "--interval-us", "100"]
        assert lab.tool(lab.near, "latency", *peer).result()["lost"] == 0
        answer, _ = intruder.communicate("\n", timeout=HANG_S)
        assert json.loads(answer) == {"read": "EAGAIN"}
        assert lab.show(lab.far)["ports"][0]["uid"] == FIRST
    finally:
        owner.close()
        if intruder:
            intruder.kill()
            intruder.wait()
