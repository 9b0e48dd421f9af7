# SPDX-License-Identifier: Apache-2.0
"""connect() more than once, and listeners that are shut down: as by the kernel."""

from __future__ import annotations

import subprocess

import pytest

from tests.link import run_in
from tests.patience import HANG_S
from tests.targets.userstack.accel_lab import INTERFACE, AccelLab
from tests.targets.userstack.test_accel import SERVER, assert_same, both_stacks, for_family

ANSWERS = "peer, _ = server.accept()\nprint(peer.recv(2))\npeer.sendall(b'ok')\n"
FAR_END = SERVER.replace("HERE", "FAR") + ANSWERS
NEAR_END = """
def connect(port):
    return errno.errorcode.get(sock.connect_ex((FAR, port)), "connected")

def events():
    poll = select.poll()
    poll.register(sock, select.POLLIN | select.POLLOUT | select.POLLRDHUP)
    return [events for _, events in poll.poll(5000)]

sock = socket.socket(FAMILY)
"""
EXCHANGE = "sock.setblocking(True)\nsock.sendall(b'hi')\nprint(sock.recv(2))\n"


def test_a_socket_that_was_refused_may_try_again(lab: AccelLab, family: int) -> None:
    near = f"{NEAR_END}print(connect(5999), connect(5999), connect(5001), connect(5001))\n{EXCHANGE}"
    assert_same(both_stacks(lab, near, FAR_END, family, near_serves=False))


@pytest.mark.parametrize("told", ["print(connect(5001))", "print(sock.getsockopt(1, 4), connect(5001))"])
def test_a_refusal_that_nobody_waited_for_is_told_once(lab: AccelLab, told: str) -> None:
    near = f"{NEAR_END}sock.setblocking(False)\nprint(connect(5999), events())\n{told}\n"
    near += f"print(sock.getsockopt(1, 4))\nsock.setblocking(True)\nprint(connect(5001))\n{EXCHANGE}"
    assert_same(both_stacks(lab, near, FAR_END, 4, near_serves=False))


def test_a_connection_that_nobody_waited_for_is_told_once(lab: AccelLab) -> None:
    near = f"{NEAR_END}sock.setblocking(False)\nprint(connect(5001), events())\n"
    near += f"print(connect(5001), connect(5001))\n{EXCHANGE}"
    assert_same(both_stacks(lab, near, FAR_END, 4, near_serves=False))


@pytest.mark.parametrize("how", ["RD", "WR", "RDWR"])
@pytest.mark.parametrize("blocks", [False, True])
def test_shutdown_ends_a_connection_that_is_being_made(lab: AccelLab, how: str, blocks: bool) -> None:
    """That is how a program calls back a thread that waits in connect()."""
    nobody = ["10.98.0.9", "lladdr", "02:00:00:00:00:09", "nud", "permanent"]
    run_in(lab.near, "ip", "neighbour", "replace", *nobody, "dev", INTERFACE)
    near = f"""{NEAR_END}
sock.setblocking({blocks})
came_to = []
def begin():
    came_to.append(errno.errorcode[sock.connect_ex(("{nobody[0]}", 5001))])
thread = threading.Thread(target=begin, daemon=True)
thread.start()
thread.join(0.3) # so long it must not come to anything
print(thread.is_alive(), came_to)
print(sock.shutdown(socket.SHUT_{how}))
thread.join({HANG_S})
print(came_to, events(), sock.getsockopt(1, 4), sock.getsockopt(1, 4), connect(5001), events(), connect(5001))
{EXCHANGE}
"""
    assert_same(both_stacks(lab, near, FAR_END, 4, near_serves=False, same_calls=False))


@pytest.mark.parametrize("bind", ["NEAR", '""'])
def test_a_listener_that_is_shut_down_ends_every_wait(lab: AccelLab, bind: str) -> None:
    """And it can listen again, for the same port."""
    near = SERVER.replace("HERE", bind)
    near += """
def wait(function):
    try:
        print(len(function()), flush=True)
    except OSError as error:
        print(errno.errorcode[error.errno], flush=True)

epoll, poll = select.epoll(), select.poll()
epoll.register(server, select.EPOLLIN)
poll.register(server, select.POLLIN)
server.shutdown(socket.SHUT_WR) # says nothing to a listener
for function in (server.accept, poll.poll, epoll.poll):
    thread = threading.Thread(target=wait, args=(function,))
    thread.start()
    time.sleep(0.2)
    server.shutdown(socket.SHUT_RD)
    thread.join()
    print(poll.poll(0)[0][1], server.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    server.listen(8)
bell, rung = socket.socket(FAMILY, socket.SOCK_DGRAM), []
bell.settimeout(0.05) # it rings again: not a time in which anything has to come
while not rung: # until the far end has begun
    bell.sendto(b"now", (FAR, 5003))
    try:
        rung = bell.recv(3)
    except TimeoutError:
        pass
print("again", server.accept()[0].recv(2))
"""
    far = """
bell = socket.socket(FAMILY, socket.SOCK_DGRAM)
bell.bind((FAR, 5003))
bell.sendto(*bell.recvfrom(3))
peer = socket.create_connection((NEAR, 5001))
peer.sendall(b"hi")
peer.recv(1)
"""
    assert_same(both_stacks(lab, near, far, 4, near_serves=True, same_calls=False))


@pytest.mark.parametrize("kind", ["unreachable", "prohibit", "blackhole", "throw"])
def test_a_way_that_is_barred_says_how(lab: AccelLab, family: int, kind: str) -> None:
    away = {4: "10.50.0.1", 6: "fd50::1"}[family]
    routes = ["ip", "-n", lab.near, f"-{family}", "route"]
    near = f"""
def connect():
    sock = socket.socket(FAMILY)
    return errno.errorcode.get(sock.connect_ex(({away!r}, 5001)), "connected")
def send():
    sock = socket.socket(FAMILY, socket.SOCK_DGRAM)
    try:
        return sock.sendto(b"x", ({away!r}, 5001))
    except OSError as error:
        return errno.errorcode[error.errno]
print(connect(), send(), flush=True)
"""
    subprocess.run([*routes, "add", kind, away], check=True)
    try:
        text = for_family(near, family)
        said = [lab.python(lab.near, text, kernel=kernel).result() for kernel in (True, False)]
    finally:
        subprocess.run([*routes, "delete", kind, away], check=True)
    assert_same(said)


FIXED_PORT = """
def begin(port):
    sock = socket.socket(FAMILY)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((NEAR, port))
    return sock, errno.errorcode.get(sock.connect_ex((FAR, 5001)), "connected")
"""


def test_a_socket_in_time_wait_has_no_peer_any_more(lab: AccelLab, family: int) -> None:
    near = f"""{FIXED_PORT}
def said(call, *arguments):
    try:
        call(*arguments)
        return "done"
    except OSError as error:
        return errno.errorcode[error.errno]

sock, _ = begin(5010)
print(said(sock.getpeername), sock.getsockname()[:2])
sock.shutdown(socket.SHUT_WR)
print(sock.recv(1))
print(said(sock.getpeername), sock.getsockname()[:2])
for how in (socket.SHUT_RD, socket.SHUT_WR, socket.SHUT_RDWR):
    print(said(sock.shutdown, how), flush=True)
if os.fork():
    os.wait()
else:
    print(said(sock.getpeername), sock.getsockname()[:2])
"""
    far = SERVER.replace("HERE", "FAR") + "peer, _ = server.accept()\nprint(peer.recv(1))\npeer.close()\n"
    assert_same(both_stacks(lab, near, far, family, near_serves=False, same_calls=False))


def test_ends_that_are_taken_are_not_available(lab: AccelLab, family: int) -> None:
    """In TIME-WAIT, too: where there are no timestamps nothing tells the old connection's segments apart."""
    near = f"""{FIXED_PORT}
sock, said = begin(5011)
print(said, begin(5011)[1])
sock.shutdown(socket.SHUT_WR)
print(sock.recv(1))
sock.close()
print(begin(5011)[1])
"""
    far = SERVER.replace("HERE", "FAR") + "peer, _ = server.accept()\nprint(peer.recv(1))\npeer.close()\n"
    run_in(lab.near, "sysctl", "-q", "net.ipv4.tcp_timestamps=0")
    try:
        said = both_stacks(lab, near, far, family, near_serves=False, same_calls=False)
    finally:
        run_in(lab.near, "sysctl", "-q", "net.ipv4.tcp_timestamps=1")
    assert_same(said)
