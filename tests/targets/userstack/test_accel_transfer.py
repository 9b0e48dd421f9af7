# SPDX-License-Identifier: Apache-2.0
"""Flags and limits of calls that send and receive: as by the kernel."""

from __future__ import annotations

from tests.patience import HANG_S
from tests.targets.userstack.accel_lab import AccelLab
from tests.targets.userstack.test_accel import SERVER, assert_same, both_stacks, for_family

CONNECTS = """
import array
import ctypes
import fcntl
import signal
import termios
libc = ctypes.CDLL(None, use_errno=True)
peer = socket.create_connection((FAR, 5001))

def attempt(function, *arguments):
    try:
        return function(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]

def waiting():
    number = array.array("i", [0])
    fcntl.ioctl(peer, termios.FIONREAD, number)
    return number[0]
"""
FAR_END = SERVER.replace("HERE", "FAR") + "peer, _ = server.accept()\n"
SENDS = (
    FAR_END
    + """
peer.sendall(bytes(range(100)))
try:
    peer.recv(1)
    peer.sendall(bytes(100))
    peer.recv(1)
except ConnectionResetError: # something is left unread
    pass
"""
)
ALL = "socket.MSG_PEEK | socket.MSG_WAITALL"


def test_a_stream_is_peeked_at_over_all_parts(lab: AccelLab) -> None:
    near = f"""{CONNECTS}
parts = [bytearray(size) for size in (10, 0, 30)]
print(peer.recv(100, {ALL}) == bytes(range(100)))
print(peer.recvmsg_into(parts, 0, socket.MSG_PEEK)[0], b"".join(parts) == bytes(range(40)), waiting())
timer = threading.Timer(0.2, peer.sendall, (b"g",))
timer.start()
print(len(peer.recv(150, {ALL})), len(peer.recv(200, {ALL} | socket.MSG_DONTWAIT)) >= 150)
peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, b"\\0" * 8 + b"\\0\\0\\1\\0" + b"\\0" * 4)
print(len(peer.recv(1000, {ALL})))
"""
    assert_same(both_stacks(lab, near, SENDS, 4, near_serves=False, same_calls=False))


def test_a_stream_is_thrown_away(lab: AccelLab) -> None:
    near = f"""{CONNECTS}
kept = bytearray(b"x" * 20)
peer.recv(100, {ALL})
print(peer.recv_into(kept, 20, socket.MSG_TRUNC | socket.MSG_PEEK), bytes(kept), waiting())
print(peer.recv_into(kept, 20, socket.MSG_TRUNC), bytes(kept), waiting())
print(libc.recv(peer.fileno(), None, 30, socket.MSG_TRUNC), peer.recv(1))
print(attempt(peer.recv, 1, socket.MSG_EOR), attempt(peer.recv, 1, socket.MSG_OOB)) # not all flags count
"""
    assert_same(both_stacks(lab, near, SENDS, 4, near_serves=False, same_calls=False))


def test_a_call_has_1024_parts_at_most(lab: AccelLab) -> None:
    near = f"""{CONNECTS}
many, fd = [bytearray(1) for _ in range(1025)], peer.fileno()
print(attempt(peer.recvmsg_into, many), attempt(os.readv, fd, many), attempt(os.writev, fd, many))
print(attempt(peer.sendmsg, many), [getattr(libc, name)(fd, None, -1) for name in ("readv", "writev")])
print(len(peer.recv(1)), os.writev(fd, many[:1024]))
"""
    far = FAR_END + "peer.sendall(b'!')\nwhile peer.recv(4096):\n    pass\n"
    assert_same(both_stacks(lab, near, far, 4, near_serves=False, same_calls=False))


def test_a_datagram_that_cannot_be_sent_is_no_broken_pipe(lab: AccelLab) -> None:
    near = f"""{CONNECTS}
heard = []
signal.signal(signal.SIGPIPE, lambda *_: heard.append("SIGPIPE"))
sock = socket.socket(FAMILY, socket.SOCK_DGRAM)
sock.connect((FAR, 5002))
sock.shutdown(socket.SHUT_WR)
print(attempt(sock.send, b"x"), heard)
peer.shutdown(socket.SHUT_WR)
print(attempt(peer.send, b"x"), heard)
"""
    assert_same(both_stacks(lab, near, FAR_END, 4, near_serves=False, same_calls=False))


def test_datagrams_of_several_calls_are_refused(lab: AccelLab) -> None:
    near = f"""{CONNECTS}
sock = socket.socket(FAMILY, socket.SOCK_DGRAM)
sock.connect((FAR, 5002))
print(attempt(sock.send, b"x", socket.MSG_MORE) == errno.errorcode[errno.EOPNOTSUPP])
"""
    far = lab.python(lab.far, for_family(FAR_END, 4)).ready()
    out, err = lab.python(lab.near, for_family(near, 4)).process.communicate(timeout=HANG_S)
    far.result()
    assert out == "True\n"
    assert "MSG_MORE" in err
