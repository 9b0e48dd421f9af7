# SPDX-License-Identifier: Apache-2.0
"""What goes past the C library's functions: syscall(2), io_uring, descriptors that go to other processes."""

from __future__ import annotations

import json
import platform

import pytest

from tests.targets.userstack.accel_lab import AccelLab
from tests.targets.userstack.test_accel import both_stacks, for_family

_X86_64 = """
read 0 write 1 close 3 ioctl 16 pwrite 18 readv 19 writev 20 dup 32 getpid 39 sendfile 40
socket 41 connect 42 sendto 44 recvfrom 45 sendmsg 46 recvmsg 47 shutdown 48 bind 49 listen 50
getsockname 51 getpeername 52 setsockopt 54 getsockopt 55 fcntl 72 epoll_ctl 233 pselect6 270
ppoll 271 epoll_pwait 281 accept4 288 epoll_create1 291 dup3 292 sendmmsg 307
"""
_AARCH64 = """
epoll_create1 20 epoll_ctl 21 epoll_pwait 22 dup 23 dup3 24 fcntl 25 ioctl 29 close 57 read 63
write 64 readv 65 writev 66 pwrite 68 sendfile 71 pselect6 72 ppoll 73 getpid 172 socket 198
bind 200 listen 201 connect 203 getsockname 204 getpeername 205 sendto 206 recvfrom 207
setsockopt 208 getsockopt 209 shutdown 210 sendmsg 211 recvmsg 212 accept4 242 sendmmsg 269
"""
_WORDS = {"x86_64": _X86_64, "aarch64": _AARCH64}[platform.machine()].split()
NUMBERS = dict(zip(_WORDS[::2], map(int, _WORDS[1::2]), strict=True))
IO_URING_SETUP = 425  # on both

RAW = f"""
import ctypes, struct
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def raw(name, *words):
    words = [ctypes.c_void_p(each) if isinstance(each, int) else each for each in words]
    result = libc.syscall(ctypes.c_long({json.dumps(NUMBERS)}[name]), *words)
    return result if result >= 0 else errno.errorcode[ctypes.get_errno()]
def vector(*buffers):
    words = [word for each in buffers for word in (ctypes.addressof(each), ctypes.sizeof(each))]
    return (ctypes.c_long * len(words))(*words)
def packed(address, family=FAMILY):
    host, port = address
    if family == socket.AF_INET:
        return struct.pack("=H", family) + struct.pack(">H", port) + socket.inet_pton(family, host) + bytes(8)
    text = socket.inet_pton(family, host)
    return struct.pack("=H", family) + struct.pack(">HI", port, 0) + text + bytes(4)
def filled(call, fd):
    room, length = ctypes.create_string_buffer(64), ctypes.c_int(64)
    return raw(call, fd, room, ctypes.byref(length)), room.raw[:length.value]
"""


def test_system_calls_by_number_say_the_same(lab: AccelLab, family: int) -> None:
    near = (
        RAW
        + """
listener = raw("socket", FAMILY, socket.SOCK_STREAM, 0)
one = ctypes.c_int(1)
begun = [raw("setsockopt", listener, socket.SOL_SOCKET, socket.SO_REUSEADDR, ctypes.byref(one), 4)]
name = packed((NEAR, 5001))
begun += [raw("bind", listener, name, len(name)), raw("listen", listener, 8)]
print("ready", flush=True)
fd = raw("accept4", listener, None, None, socket.SOCK_CLOEXEC)
print(begun, filled("getsockname", listener))
print(fd >= 0, filled("getsockname", fd), filled("getpeername", fd)[1][4:28])
data = ctypes.create_string_buffer(6)
poll = ctypes.create_string_buffer(struct.pack("ihh", fd, select.POLLIN, 0))
limit = ctypes.create_string_buffer(struct.pack("qq", 3600, 0))
print(raw("ppoll", poll, 1, limit, None, 8), poll.raw[:8], struct.unpack_from("qq", limit.raw) < (3600, 0))
print(raw("read", fd, data, 6), data.raw)
sets = [(ctypes.c_ulong * 16)() for _ in range(2)]
sets[0][fd // 64] = sets[1][fd // 64] = 1 << fd % 64
print(raw("pselect6", fd + 1, sets[0], sets[1], None, limit, None), list(sets[0]), list(sets[1]))
print(raw("sendto", fd, b"on", 2, socket.MSG_NOSIGNAL, None, 0))
epoll = raw("epoll_create1", 0)
event = ctypes.create_string_buffer(b"\\x01\\0\\0\\0" + b"\\7" * 12)
print(raw("epoll_ctl", epoll, 3, fd, event), raw("epoll_ctl", epoll, 1, fd, event))
print(raw("epoll_pwait", epoll, event, 1, -1, None, 8), event.raw[:4])
print(raw("recvfrom", fd, data, 6, socket.MSG_PEEK, None, None), data.raw)
print(raw("readv", fd, vector(data), 1), data.raw)
other = raw("dup", fd)
print(other >= 0, raw("fcntl", other, 3, 0) & os.O_NONBLOCK, raw("fcntl", fd, 4, os.O_NONBLOCK))
print(raw("recvfrom", other, data, 6, 0, None, None), raw("fcntl", fd, 4, 0))
print(raw("dup3", fd, other, 0) == other, raw("dup3", fd, fd, 0), raw("close", other), raw("close", other))
waiting = ctypes.c_int(9)
print(raw("ioctl", fd, 0x541B, ctypes.byref(waiting)), waiting.value)
parts = [ctypes.create_string_buffer(text, len(text)) for text in (b"by ", b"parts ")]
print(raw("writev", fd, vector(*parts), 2), raw("write", fd, b"whole ", 6))
print(raw("pwrite", fd, b"x", 1, 0), raw("getpid") == os.getpid())
file = open(__file__, "rb")
print(raw("sendfile", fd, file.fileno(), None, 6), raw("write", -1, b"x", 1))
print(raw("shutdown", fd, socket.SHUT_WR), raw("read", fd, data, 6))
print(raw("close", fd), raw("read", fd, data, 6))
"""
    )
    far = """
peer = socket.create_connection((NEAR, 5001))
peer.sendall(b"first ")
assert peer.recv(2) == b"on"
peer.sendall(b"second")
data = b""
while piece := peer.recv(100):
    data += piece
print(data)
"""
    said = both_stacks(lab, near, far, family, near_serves=True)
    assert said[0] == said[1]
    assert "b'second'" in said[0]


def test_datagrams_by_number(lab: AccelLab, family: int) -> None:
    far = """
sock = socket.socket(FAMILY, socket.SOCK_DGRAM)
sock.bind((FAR, 5002))
print("ready", flush=True)
for _ in range(2):
    sock.sendto(*sock.recvfrom(100))
"""
    near = (
        RAW
        + """
fd = raw("socket", FAMILY, socket.SOCK_DGRAM, 0)
name = packed((FAR, 5002))
text = ctypes.create_string_buffer(b"datagram", 8)
print(raw("sendto", fd, b"first", 5, 0, name, len(name)))
room = ctypes.create_string_buffer(20)
print(raw("recvfrom", fd, room, 20, 0, None, None), room.raw[:5])
print(raw("connect", fd, name, len(name)))
message = ctypes.create_string_buffer(struct.pack("7q", 0, 0, ctypes.addressof(vector(text)), 1, 0, 0, 0))
parts = vector(text)
struct.pack_into("q", message, 16, ctypes.addressof(parts))
print(raw("sendmsg", fd, message, 0))
parts = vector(room)
struct.pack_into("q", message, 16, ctypes.addressof(parts))
print(raw("recvmsg", fd, message, 0), room.raw[:8])
"""
    )
    said = both_stacks(lab, near, far, family, near_serves=False)
    assert said[0] == said[1]
    assert "b'datagram'" in said[0]


def _said(lab: AccelLab, script: str) -> tuple[str, str]:
    """Run a script by the stack; return what it prints and what stands on standard error."""
    process = lab.python(lab.near, for_family(script, 4)).process
    out, err = process.communicate()
    assert process.returncode == 0, err
    return out, err


def test_io_uring_is_refused_and_named_once(lab: AccelLab) -> None:
    out, err = _said(
        lab,
        RAW
        + f"""
room = ctypes.create_string_buffer(120)
for _ in range(2):
    print(libc.syscall(ctypes.c_long({IO_URING_SETUP}), 8, room), errno.errorcode[ctypes.get_errno()])
""",
    )
    assert out == "-1 ENOSYS\n" * 2
    assert err.count("bw-accel") == 1
    assert "io_uring" in err


PASSING = """
import array
one, other = socket.socketpair()
def pack(*fds):
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
def told(call, *arguments):
    try:
        return call(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]
undecided, pipe = socket.socket(), os.pipe()
taken = socket.socket(FAMILY, socket.SOCK_DGRAM)
taken.connect((FAR, 5009))
"""


def test_a_descriptor_of_the_stack_goes_to_no_other_process(lab: AccelLab) -> None:
    out, err = _said(
        lab,
        PASSING
        + """
for fds in ([taken.fileno()], [pipe[0], taken.fileno()], [pipe[0], undecided.fileno()]):
    print(told(one.sendmsg, [b"x"], pack(*fds)))
print(len(socket.recv_fds(other, 100, 10)[1]))
taken.close()
print(told(one.sendmsg, [b"x"], pack(pipe[1])))
""",
    )
    assert out == "EINVAL\nEINVAL\n1\n2\n1\n"
    assert err.count("bw-accel") == 1
    assert "SCM_RIGHTS" in err


@pytest.mark.parametrize("call", ["sendmmsg", "syscall"])
def test_of_several_messages_those_before_it_go(lab: AccelLab, call: str) -> None:
    send = "libc.sendmmsg" if call == "sendmmsg" else "lambda *words: raw('sendmmsg', *words)"
    out, err = _said(
        lab,
        RAW
        + PASSING
        + f"""
text = ctypes.create_string_buffer(b"x", 1)
parts = vector(text)
rights = [struct.pack("qiii", 20, socket.SOL_SOCKET, socket.SCM_RIGHTS, fd) + bytes(4)
          for fd in (pipe[0], taken.fileno())]
rights = [ctypes.create_string_buffer(each, 24) for each in rights]
def many(*which):
    each = [struct.pack("8q", 0, 0, ctypes.addressof(parts), 1, ctypes.addressof(rights[i]), 24, 0, 0)
            for i in which]
    return ctypes.create_string_buffer(b"".join(each))
send = {send}
print(send(one.fileno(), many(0, 1, 0), 3, 0), len(socket.recv_fds(other, 100, 10)[1]))
print(send(one.fileno(), many(1, 0), 2, 0) in (-1, "EINVAL"), ctypes.get_errno() == errno.EINVAL)
""",
    )
    assert out == "1 1\nTrue True\n", err
    assert err.count("bw-accel") == 1
