# SPDX-License-Identifier: Apache-2.0
"""Control messages of unmodified programs: when and where to data came, and where from they send."""

from __future__ import annotations

import errno
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import HANG_S, wait_until
from tests.targets.userstack.accel_lab import INTERFACE, AccelLab
from tests.targets.userstack.test_accel import SERVER, assert_same, both_stacks, for_family

SECOND = {4: "10.98.0.11", 6: "fd98::11"}
"""At the near end, besides its first address."""
RX_SOFTWARE, TX_SOFTWARE, RAW_HARDWARE, SOFTWARE = 1 << 3, 1 << 1, 1 << 6, 1 << 4
SO_TIMESTAMPING = 37

NAMES = """
import ctypes, struct
IP_PKTINFO, IPV6_PKTINFO = 8, 50
SO_TIMESTAMP, SO_TIMESTAMPNS, SO_TIMESTAMPING = 29, 35, 37
RECEIVED = 1 << 3 | 1 << 4 # SOF_TIMESTAMPING_RX_SOFTWARE, SOF_TIMESTAMPING_SOFTWARE

def told(ancillary):
    said = []
    for level, name, data in ancillary:
        if (level, name) == (socket.IPPROTO_IP, IP_PKTINFO):
            ips = [socket.inet_ntop(socket.AF_INET, data[at:at + 4]) for at in (4, 8)]
            said.append(("v4", struct.unpack_from("i", data), ips))
        elif (level, name) == (socket.IPPROTO_IPV6, IPV6_PKTINFO):
            ip = socket.inet_ntop(socket.AF_INET6, data[:16])
            said.append(("v6", struct.unpack_from("i", data, 16), ip))
        else:
            said.append((level, name, len(data)))
    return said

def stamps_ns(ancillary):
    ns = []
    for level, name, data in ancillary:
        seconds, rest = struct.unpack_from("qq", data)
        ns.append(seconds * 10**9 + rest * (1000 if name == SO_TIMESTAMP else 1))
        assert name != SO_TIMESTAMPING or not any(data[16:])
    return ns
"""


@pytest.fixture(scope="module")
def lab(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccelLab]:
    with AccelLab(repository / ".build/linux", tmp_path_factory.mktemp("control")) as made, KernelStamps():
        for ip, more in ((f"{SECOND[4]}/24", []), (f"{SECOND[6]}/64", ["nodad"])):
            argv = ["ip", "-n", made.near, "address", "add", ip, *more, "dev", INTERFACE]
            subprocess.run(argv, check=True, capture_output=True, timeout=HANG_S)
        yield made


class KernelStamps:
    """The kernel stamps what comes, for all its sockets: it begins a while after the first one has asked."""

    def __enter__(self) -> None:
        """Ask, and wait until it does."""
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind(("127.0.0.1", 0))
        self.sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, RX_SOFTWARE | SOFTWARE)
        wait_until(self._stamps, "the kernel to stamp")

    def _stamps(self) -> bool:
        self.sock.sendto(b"x", self.sock.getsockname())
        return bool(self.sock.recvmsg(1, 100)[1])

    def __exit__(self, *_: object) -> None:
        """Ask no more."""
        self.sock.close()


@pytest.fixture(autouse=True)
def programs(lab: AccelLab) -> Iterator[None]:
    """Whatever a test has started ends with it, and its ports are free."""
    yield
    lab.end_programs()


def test_a_server_is_told_the_address_and_answers_from_it(lab: AccelLab, family: int) -> None:
    """What comes to each address is answered from the other one."""
    near = f"""{NAMES}
sock = socket.socket(FAMILY, socket.SOCK_DGRAM)
six = FAMILY == socket.AF_INET6
options = [(socket.IPPROTO_IP, IP_PKTINFO)] + [(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO)] * six
for option in options:
    sock.setsockopt(*option, 1)
sock.bind(("", 5003))
print("ready", flush=True)
for other in ({SECOND[family]!r}, NEAR):
    data, ancillary, flags, peer = sock.recvmsg(100, 200)
    print(data, told(ancillary), flags, peer[0])
    packed = socket.inet_pton(FAMILY, other)
    info = packed + struct.pack("i", 0) if six else struct.pack("i", 0) + packed + bytes(4)
    level, name = (socket.IPPROTO_IPV6, IPV6_PKTINFO) if six else (socket.IPPROTO_IP, IP_PKTINFO)
    print(sock.sendmsg([b"ans", b"wer"], [(level, name, info)], 0, peer))
print([sock.getsockopt(*option) for option in options])
for room in (0, 4, 16, 24, 30):
    data, ancillary, flags, _ = sock.recvmsg(100, room)
    print(room, data, [(level, name, len(value)) for level, name, value in ancillary], flags)
for option in options:
    sock.setsockopt(*option, 0)
print(sock.recvmsg(100, 200)[:3])
try:
    sock.sendmsg([b"x"], [(level, name, info.replace(packed, bytes([9]) * len(packed)))], 0, peer)
except OSError as error:
    print(errno.errorcode[error.errno])
"""
    far = f"""
sock = socket.socket(FAMILY, socket.SOCK_DGRAM)
for to, other in ((NEAR, {SECOND[family]!r}), ({SECOND[family]!r}, NEAR)):
    sock.sendto(b"question", (to, 5003))
    data, peer = sock.recvfrom(100)
    assert (data, peer[0]) == (b"answer", other), (data, peer)
for _ in range(6):
    sock.sendto(b"more", (NEAR, 5003))
"""
    assert_same(both_stacks(lab, near, far, family, near_serves=True))


def test_a_socket_of_ipv6_is_told_addresses_of_ipv4(lab: AccelLab) -> None:
    near = f"""{NAMES}
sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
sock.bind(("", 5003))
sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
sock.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
print("ready", flush=True)
data, ancillary, flags, peer = sock.recvmsg(100, 200)
print(data, told(ancillary), flags, peer[0])
info = struct.pack("i", 0) + socket.inet_aton({SECOND[4]!r}) + bytes(4)
print(sock.sendmsg([b"answer"], [(socket.IPPROTO_IP, IP_PKTINFO, info)], 0, peer))
"""
    far = f"""
sock = socket.socket(FAMILY, socket.SOCK_DGRAM)
sock.sendto(b"question", (NEAR, 5003))
assert sock.recvfrom(100)[1][0] == {SECOND[4]!r}
"""
    assert_same(both_stacks(lab, near, far, 4, near_serves=True))


ASKED = {
    "timeval": ["SO_TIMESTAMP, 1"],
    "timespec": ["SO_TIMESTAMPNS, 1"],
    "timespec-instead": ["SO_TIMESTAMP, 1", "SO_TIMESTAMPNS, 1"],
    "timeval-instead": ["SO_TIMESTAMPNS, 1", "SO_TIMESTAMP, 1"],
    "stamping": ["SO_TIMESTAMPING, RECEIVED"],
    "both": ["SO_TIMESTAMPING, RECEIVED", "SO_TIMESTAMPNS, 1"],
    "none-any-more": [
        "SO_TIMESTAMPING, RECEIVED",
        "SO_TIMESTAMP, 1",
        "SO_TIMESTAMPING, 0",
        "SO_TIMESTAMP, 0",
    ],
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("late", [False, True], ids=["at-once", "bound-before"])
def test_datagrams_are_stamped_when_they_come(lab: AccelLab, family: int, asked: str, late: bool) -> None:
    options = [f"sock.setsockopt(socket.SOL_SOCKET, {each})" for each in ASKED[asked]]
    bind = 'sock.bind(("", 5003))'
    opened = "\n".join([bind, *options] if late else [*options, bind])
    near = f"""{NAMES}
sock = socket.socket(FAMILY, socket.SOCK_DGRAM)
{opened}
print("ready", flush=True)
before = 0
for _ in range(3):
    select.select([sock], [], [])
    ready = time.time_ns()
    data, ancillary, flags, _ = sock.recvmsg(100, 200)
    sent = int(data) // 1000 * 1000
    stamps = stamps_ns(ancillary)
    print(told(ancillary), flags, all(max(sent, before) <= stamp <= ready for stamp in stamps))
    before = max([before, *stamps])
"""
    far = """
sock = socket.socket(FAMILY, socket.SOCK_DGRAM)
for _ in range(3):
    sock.sendto(str(time.time_ns()).encode(), (NEAR, 5003))
"""
    # Other data each time: that is when it was sent.
    said = both_stacks(lab, near, far, family, near_serves=True, same_calls=False)
    assert_same(said)
    assert "False" not in said[1]
    assert said[1].startswith("[]") == (asked == "none-any-more")


def test_what_came_before_stamps_were_asked_for_has_one_all_the_same(lab: AccelLab, family: int) -> None:
    """That of its reading, where nobody else has the kernel take it before."""
    near = f"""{NAMES}
sock = socket.socket(FAMILY, socket.SOCK_DGRAM)
sock.bind(("", 5003))
begun = time.time_ns()
print("ready", flush=True)
select.select([sock], [], [])
sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
data, ancillary, flags, _ = sock.recvmsg(100, 200)
print(told(ancillary), flags, [begun <= stamp <= time.time_ns() for stamp in stamps_ns(ancillary)])
"""
    far = 'socket.socket(FAMILY, socket.SOCK_DGRAM).sendto(b"early", (NEAR, 5003))'
    said = both_stacks(lab, near, far, family, near_serves=True)
    assert_same(said)
    assert "[True]" in said[0]


def test_many_datagrams_at_once_are_stamped(lab: AccelLab, family: int) -> None:
    near = f"""{NAMES}
class Part(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]
class Message(ctypes.Structure):
    _fields_ = [("name", ctypes.c_void_p), ("name_bytes", ctypes.c_uint32), ("parts", ctypes.POINTER(Part)),
                ("count", ctypes.c_size_t), ("control", ctypes.c_void_p), ("control_bytes", ctypes.c_size_t),
                ("flags", ctypes.c_size_t), ("received_bytes", ctypes.c_size_t)]
sock = socket.socket(FAMILY, socket.SOCK_DGRAM)
sock.bind((NEAR, 5003))
sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
sock.setsockopt(*((socket.IPPROTO_IPV6, 49) if FAMILY == socket.AF_INET6 else (socket.IPPROTO_IP, 8)), 1)
print("ready", flush=True)
room = [ctypes.create_string_buffer(100) for _ in range(6)]
parts = [Part(ctypes.addressof(each), 100) for each in room[:3]]
messages = (Message * 3)(*(Message(None, 0, ctypes.pointer(part), 1, ctypes.addressof(each), 100)
                           for part, each in zip(parts, room[3:])))
print(ctypes.CDLL(None).recvmmsg(sock.fileno(), messages, 3, 0, None))
for message, data, control in zip(messages, room, room[3:]):
    head = struct.unpack_from("Qii", control.raw)
    print(data.raw[:message.received_bytes], message.control_bytes, message.flags, head)
    print(control.raw[32:68])
    assert 0 < struct.unpack_from("q", control.raw, 16)[0] <= time.time()
"""
    far = """
sock = socket.socket(FAMILY, socket.SOCK_DGRAM)
for number in range(3):
    sock.sendto(b"number %d" % number, (NEAR, 5003))
"""
    assert_same(both_stacks(lab, near, far, family, near_serves=True))


@pytest.mark.parametrize("asked", ["timeval", "both"])
def test_a_stream_is_stamped_by_its_last_segment(lab: AccelLab, family: int, asked: str) -> None:
    """The listener has asked, and what it accepts has it."""
    options = "\n".join(f"server.setsockopt(socket.SOL_SOCKET, {each})" for each in ASKED[asked])
    near = (
        NAMES
        + SERVER.replace("HERE", "NEAR").replace('print("ready"', options + '\nprint("ready"')
        + """
connection, _ = server.accept()
for name in (SO_TIMESTAMP, SO_TIMESTAMPNS, SO_TIMESTAMPING):
    print(connection.getsockopt(socket.SOL_SOCKET, name))
def received(flags):
    select.select([connection], [], [])
    ready = time.time_ns()
    data, ancillary, flags, _ = connection.recvmsg(40, 200, flags)
    stamps = stamps_ns(ancillary)
    sent = int(data.split()[-1]) // 1000 * 1000 if data else 0
    print(len(data), told(ancillary), flags, all(sent <= stamp for stamp in stamps))
    return stamps, ready
first, ready = received(socket.MSG_PEEK)
print(received(0)[0] == first, max(first) <= ready)
connection.sendall(b"go on")
second, _ = received(socket.MSG_WAITALL)
print(min(second) > max(first))
print(received(0)[0])
"""
    )
    far = """
peer = socket.create_connection((NEAR, 5001))
peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
def send():
    peer.sendall(b"%20d" % time.time_ns())
send()
peer.recv(100)
send()
send()
peer.close()
"""
    # Other data each time: that is when it was sent.
    said = both_stacks(lab, near, far, family, near_serves=True, same_calls=False)
    assert_same(said)
    assert "False" not in said[1]


@pytest.mark.parametrize("flags", [TX_SOFTWARE | SOFTWARE, RAW_HARDWARE | RX_SOFTWARE | SOFTWARE])
def test_stamps_of_what_is_sent_and_of_hardware_are_refused_by_name(lab: AccelLab, flags: int) -> None:
    near = f"""{NAMES}
sock = socket.socket(FAMILY, socket.SOCK_DGRAM)
sock.bind((NEAR, 5003))
try:
    sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, {flags})
except OSError as error:
    print(error.errno)
try:
    ancillary = [(socket.SOL_SOCKET, SO_TIMESTAMPING, struct.pack("I", {TX_SOFTWARE}))]
    sock.sendmsg([b"x"], ancillary, 0, (FAR, 5003))
except OSError as error:
    print(error.errno)
"""
    out, err = lab.python(lab.near, for_family(near, 4)).process.communicate(timeout=HANG_S)
    assert out.splitlines() == [str(errno.ENOPROTOOPT), str(errno.EOPNOTSUPP)]
    option, message = err.splitlines()
    assert option.endswith(f"option 37 of level 1 with the value {flags} is not supported")
    assert message.endswith("control message 37 of level 1 with what is sent is not supported")
