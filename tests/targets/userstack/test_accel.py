# SPDX-License-Identifier: Apache-2.0
"""Unmodified programs by the user-mode stack: each script says the same as by the kernel's."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.link import kernel_counts
from tests.patience import HANG_S
from tests.targets.userstack.accel_lab import FAR, NEAR, AccelLab

COMPARE = Path(__file__).resolve().parents[3] / "targets/linux/userstack/record/compare_calls.py"
FAMILIES = {4: "socket.AF_INET", 6: "socket.AF_INET6"}
COUNTED = (
    *("Tcp:InSegs", "Tcp:OutSegs", "Tcp:OutRsts", "Udp:InDatagrams", "Udp:OutDatagrams", "Udp:NoPorts"),
    *("Udp6InDatagrams", "Udp6OutDatagrams", "Udp6NoPorts"),
)


@pytest.fixture(scope="module", params=[1500, 9000], ids=["mtu-1500", "mtu-9000"])
def lab(
    request: pytest.FixtureRequest, repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AccelLab]:
    folder = tmp_path_factory.mktemp("accel")
    with AccelLab(repository / ".build/linux", folder, request.param) as made:
        yield made


def for_family(text: str, family: int) -> str:
    text = text.replace("FAMILY", FAMILIES[family])
    return text.replace("NEAR", repr(NEAR[family])).replace("FAR", repr(FAR[family]))


def both_stacks(
    lab: AccelLab, near: str, far: str, family: int, *, near_serves: bool, same_calls: bool = True
) -> list[str]:
    """Run two scripts, the near one by the kernel, then by the stack; return what that said each time.

    The one that serves says a line when it is ready. The kernel may carry nothing of it the second time, and
    the near script's calls have to be the same.
    """
    said: list[str] = []
    records = [lab.folder / f"calls-{stack}.ndjson" for stack in ("kernel", "user")]
    texts = [for_family(text, family) for text in (near, far)]
    for kernel, record in zip((True, False), records, strict=True):
        record.unlink(missing_ok=True)
        before = kernel_counts(lab.near)
        ends = [partial(lab.python, lab.near, texts[0], kernel=kernel, record=record)]
        ends.insert(0 if not near_serves else 1, partial(lab.python, lab.far, texts[1], kernel=True))
        server = ends[0]().ready()
        client = ends[1]()
        results = [client.result(), server.result()]
        said.append(results[1] if near_serves else results[0])
        after = kernel_counts(lab.near)
        carried = {name: after[name] - before[name] for name in COUNTED if after[name] != before[name]}
        assert kernel or not carried, carried
    compared = subprocess.run(
        [sys.executable, str(COMPARE), *map(str, records)], capture_output=True, text=True
    )
    assert compared.returncode == 0 or not same_calls, compared.stdout + compared.stderr
    return said


def assert_same(said: list[str]) -> None:
    assert said[0] == said[1]
    assert said[0]


SERVER = """
server = socket.socket(FAMILY, socket.SOCK_STREAM)
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind((HERE, 5001))
server.listen(8)
print("ready", flush=True)
"""


def test_a_server_accepts_answers_and_closes(lab: AccelLab, family: int) -> None:
    near = (
        SERVER.replace("HERE", "NEAR")
        + """
connection, peer = server.accept()
print(peer[0], connection.getsockname()[:2], connection.getpeername()[0] == peer[0])
print(connection.recv(100))
connection.sendall(b"answer")
print(connection.recv(100))
connection.close()
"""
    )
    far = """
peer = socket.create_connection((NEAR, 5001))
peer.sendall(b"question")
print(peer.recv(100))
peer.shutdown(socket.SHUT_WR)
print(peer.recv(100))
"""
    assert_same(both_stacks(lab, near, far, family, near_serves=True))


def test_a_client_connects_and_moves_a_megabyte_each_way(lab: AccelLab, family: int) -> None:
    far = (
        SERVER.replace("HERE", "FAR")
        + """
connection, _ = server.accept()
data = b""
while len(data) < 1 << 20:
    data += connection.recv(1 << 16)
connection.sendall(data)
print(connection.recv(1))
"""
    )
    near = """
import hashlib
data = bytes(hashlib.shake_256(b"seed").digest(1 << 20))
peer = socket.create_connection((FAR, 5001))
thread = threading.Thread(target=peer.sendall, args=(data,))
thread.start()
got = b""
while len(got) < len(data):
    got += peer.recv(1 << 16)
thread.join()
print(got == data, peer.getpeername()[:2])
"""
    assert_same(both_stacks(lab, near, far, family, near_serves=False))


def test_a_port_without_a_listener_is_refused(lab: AccelLab, family: int) -> None:
    near = """
for _ in range(3):
    sock = socket.socket(FAMILY)
    try:
        sock.connect((FAR, 5999))
    except OSError as error:
        print(errno.errorcode[error.errno])
"""
    far = "print('ready', flush=True)"
    assert_same(both_stacks(lab, near, far, family, near_serves=False))


@pytest.mark.parametrize("connected", [False, True])
def test_datagrams_go_both_ways(lab: AccelLab, family: int, connected: bool) -> None:
    far = """
sock = socket.socket(FAMILY, socket.SOCK_DGRAM)
sock.bind((FAR, 5002))
print("ready", flush=True)
for _ in range(4):
    data, peer = sock.recvfrom(70000)
    sock.sendto(data, peer)
"""
    to_far = "send = lambda data: sock.sendto(data, (FAR, 5002))"
    send = "sock.connect((FAR, 5002))\nsend = sock.send" if connected else to_far
    near = f"""
sock = socket.socket(FAMILY, socket.SOCK_DGRAM)
{send}
for size in (1, 1400, 9000, 60000):
    print(send(bytes(size)))
    data, peer = sock.recvfrom(70000)
    print(len(data), peer[:2])
"""
    assert_same(both_stacks(lab, near, far, family, near_serves=False))


def test_a_datagram_server_bound_to_all_addresses(lab: AccelLab, family: int) -> None:
    near = """
sock = socket.socket(FAMILY, socket.SOCK_DGRAM)
sock.bind(("", 5003))
print("ready", flush=True)
data, peer = sock.recvfrom(100)
print(data, peer[0])
sock.sendto(b"answer", peer)
"""
    far = """
sock = socket.socket(FAMILY, socket.SOCK_DGRAM)
sock.sendto(b"question", (NEAR, 5003))
print(sock.recvfrom(100)[0])
"""
    assert_same(both_stacks(lab, near, far, family, near_serves=True))


WAITS = {
    "select": "ready = lambda: select.select([server, *conns], [], [])[0]",
    "poll": """
def ready():
    poll = select.poll()
    for each in (server, *conns):
        poll.register(each, select.POLLIN)
    fds = [fd for fd, _ in poll.poll()]
    return [each for each in (server, *conns) if each.fileno() in fds]
""",
    "epoll": """
epoll, watched = select.epoll(), set()
def ready():
    for each in (server, *conns):
        if each.fileno() not in watched:
            watched.add(each.fileno())
            epoll.register(each, select.EPOLLIN)
    fds = [fd for fd, _ in epoll.poll()]
    return [each for each in (server, *conns) if each.fileno() in fds]
""",
    "nested epoll": """
outer, epoll, watched = select.epoll(), select.epoll(), set()
outer.register(epoll.fileno(), select.EPOLLIN)
def ready():
    for each in (server, *conns):
        if each.fileno() not in watched:
            watched.add(each.fileno())
            epoll.register(each, select.EPOLLIN)
    assert outer.poll() == [(epoll.fileno(), select.EPOLLIN)]
    fds = [fd for fd, _ in epoll.poll(0)]
    return [each for each in (server, *conns) if each.fileno() in fds]
""",
}


@pytest.mark.parametrize("wait", WAITS, ids=lambda name: name.replace(" ", "-"))
def test_waiting_for_many(lab: AccelLab, family: int, wait: str) -> None:
    near = (
        SERVER.replace("HERE", "NEAR")
        + "conns = []\n"
        + WAITS[wait]
        + """
server.setblocking(False)
total = ended = 0
while ended < 5:
    for each in ready():
        if each is server:
            conns.append(server.accept()[0])
            continue
        data = each.recv(100)
        total += len(data)
        if data:
            each.sendall(data)
        else:
            if "watched" in globals():
                watched.discard(each.fileno())
            conns.remove(each)
            each.close()
            ended += 1
print(total)
"""
    )
    far = """
peers = [socket.create_connection((NEAR, 5001)) for _ in range(5)]
for turn in range(20):
    for peer in peers:
        peer.sendall(b"x" * 10)
    for peer in peers:
        assert peer.recv(100) == b"x" * 10
"""
    assert_same(both_stacks(lab, near, far, family, near_serves=True))


def test_asyncio(lab: AccelLab, family: int) -> None:
    near = """
import asyncio
async def serve(reader, writer):
    while line := await reader.readline():
        writer.write(line.upper())
        await writer.drain()
    writer.close()
    ended.set()
async def main():
    global ended
    ended = asyncio.Event()
    async with await asyncio.start_server(serve, NEAR, 5001):
        print("ready", flush=True)
        await ended.wait()
    print("ended")
asyncio.run(main())
"""
    far = """
peer = socket.create_connection((NEAR, 5001))
file = peer.makefile("rwb", buffering=0)
for word in (b"one", b"two"):
    file.write(word + b"\\n")
    print(file.readline())
"""
    assert_same(both_stacks(lab, near, far, family, near_serves=True))


def test_loopback_and_a_listener_on_all_addresses(lab: AccelLab) -> None:
    """On one socket the kernel takes who comes by loopback, the user-mode stack who comes by the card."""
    near = """
server = socket.socket()
server.bind(("", 5001))
server.listen()
print("ready", flush=True)
def inside():
    inner = socket.create_connection(("127.0.0.1", 5001))
    inner.sendall(b"inside")
    inner.close()
thread = threading.Thread(target=inside)
thread.start()
said = set()
for _ in range(2):
    connection, peer = server.accept()
    said.add((connection.recv(100), peer[0]))
thread.join()
print(sorted(said))
"""
    far = """
peer = socket.create_connection((NEAR, 5001))
peer.sendall(b"outside")
print(peer.recv(1))
"""
    server = lab.python(lab.near, for_family(near, 4)).ready()
    lab.python(lab.far, for_family(far, 4), kernel=True).result()
    assert server.result() == "[(b'inside', '127.0.0.1'), (b'outside', '10.98.0.2')]\n"


def test_ranges_of_descriptors_close_what_they_name_and_no_more(lab: AccelLab, family: int) -> None:
    near = (
        SERVER.replace("HERE", "NEAR")
        + """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
kept, _ = server.accept()
os.dup2(kept.fileno(), 40), os.dup2(kept.fileno(), 45)
closed, _ = server.accept()
os.dup2(closed.fileno(), 42)
closed.detach()
epoll = select.epoll()
os.dup2(epoll.fileno(), 43), os.dup2(0, 44)
first = closed.fileno()
print(libc.close_range(41, 44, 0))
for fd in range(40, 46):
    try:
        print(os.fstat(fd).st_size)
    except OSError as error:
        print(error.strerror)
print(libc.close_range(9, 8, 0), errno.errorcode[ctypes.get_errno()], libc.close_range(9, 9, 1 << 9))
for fd in range(3, 40):
    if fd not in (server.fileno(), kept.fileno()):
        try:
            os.close(fd)
        except OSError:
            pass
os.write(kept.fileno(), b"still here")
print(kept.recv(20))
server.detach(), kept.detach()
libc.closefrom(3)
again = socket.socket(FAMILY, socket.SOCK_STREAM)
again.bind((NEAR, 0))
again.connect((FAR, 5002))
print(again.recv(20))
"""
    )
    far = """
listener = socket.socket(FAMILY, socket.SOCK_STREAM)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind((FAR, 5002))
listener.listen(8)
one = socket.create_connection((NEAR, 5001))
other = socket.create_connection((NEAR, 5001))
assert other.recv(1) == b""
assert one.recv(20) == b"still here"
one.sendall(b"so am I")
assert one.recv(1) == b""
peer, _ = listener.accept()
peer.sendall(b"anew")
"""
    said = both_stacks(lab, near, far, family, near_serves=True, same_calls=False)
    assert_same(said)
    assert "b'anew'" in said[0]


def test_what_ends_with_an_empty_part_goes_at_once(lab: AccelLab) -> None:
    """A reset drops what would still wait for more."""
    far = (
        SERVER.replace("HERE", "FAR")
        + """
peer, _ = server.accept()
try:
    got = peer.recv(10)
except OSError as error:
    got = errno.errorcode[error.errno].encode()
server.accept()[0].sendall(got)
"""
    )
    near = """
sock = socket.create_connection((FAR, 5001))
sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\\1\\0\\0\\0\\0\\0\\0\\0")
print(os.writev(sock.fileno(), [b"", b"da", b"ta", b""]))
sock.close()
print(socket.create_connection((FAR, 5001)).recv(20))
"""
    said = both_stacks(lab, near, far, 4, near_serves=False)
    assert_same(said)
    assert "data" in said[0]


def test_what_cannot_be_spliced_is_refused(lab: AccelLab, family: int) -> None:
    """The program is told at once, and has what it was sent by reading."""
    far = SERVER.replace("HERE", "FAR") + "peer, _ = server.accept()\npeer.sendall(b'data')\n"
    near = """
sock = socket.create_connection((FAR, 5001))
out, into = os.pipe()
for ends in ((sock.fileno(), into), (out, sock.fileno())):
    try:
        print(os.splice(*ends, 10))
    except OSError as error:
        print(errno.errorcode[error.errno])
print(sock.recv(10))
"""
    peer = lab.python(lab.far, for_family(far, family), kernel=True).ready()
    output, errors = lab.python(lab.near, for_family(near, family)).process.communicate(timeout=HANG_S)
    assert output == "EINVAL\nEINVAL\nb'data'\n"
    assert errors.count("splice() is not supported") == 1
    peer.result()


def test_select_leaves_what_is_left_of_its_timeout(lab: AccelLab, family: int) -> None:
    far = SERVER.replace("HERE", "FAR") + "peer, _ = server.accept()\npeer.sendall(b'data')\npeer.recv(1)\n"
    near = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
sock = socket.create_connection((FAR, 5001))
def select_for(s, us):
    readable, left = (ctypes.c_ulong * 16)(), (ctypes.c_long * 2)(s, us)
    readable[sock.fileno() // 64] = 1 << sock.fileno() % 64
    result = libc.select(sock.fileno() + 1, readable, None, None, left)
    return result, sum(readable) != 0, left
result, is_readable, left = select_for(3600, 0)
print(result, is_readable, 0 < left[0] < 3600, 0 <= left[1] < 1000000)
print(sock.recv(4))
result, is_readable, left = select_for(0, 1500)
print(result, is_readable, *left)
print(select_for(-1, 0)[0], errno.errorcode[ctypes.get_errno()])
"""
    assert_same(both_stacks(lab, near, far, family, near_serves=False, same_calls=False))
