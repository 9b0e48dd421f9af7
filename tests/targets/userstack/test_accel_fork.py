# SPDX-License-Identifier: Apache-2.0
"""Forks of programs by the user-mode stack: what they share with their parent, and what is their own."""

from __future__ import annotations

import pytest

from tests.patience import HANG_S
from tests.targets.userstack.accel_lab import AccelLab
from tests.targets.userstack.test_accel import SERVER, assert_same, both_stacks, for_family

ASKS = """
for _ in range(3):
    peer = socket.create_connection((NEAR, 5001))
    peer.sendall(b"question")
    answer = b""
    while piece := peer.recv(1 << 16):
        answer += piece
    print(len(answer))
"""
CALLS = """
for _ in range(3):
    peer = socket.create_connection((NEAR, 5001))
    peer.sendall(b"question")
    try:
        while peer.recv(1 << 16):
            pass
    except ConnectionResetError: # a question may be left unread
        pass
"""
NEAR_SERVER = SERVER.replace("HERE", "NEAR").replace('print("ready", flush=True)', "")
READY = 'print("ready", flush=True)\n'


def test_a_child_serves_the_connection_that_its_parent_accepted(lab: AccelLab) -> None:
    near = (
        NEAR_SERVER
        + READY
        + """
for _ in range(3):
    connection, peer = server.accept()
    child = os.fork()
    if child == 0:
        server.close()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        same = connection.getpeername() == peer
        connection.sendall(connection.recv(100) * 100000)
        connection.close()
        os._exit(7 if same else 1)
    connection.close()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    )
    assert_same(both_stacks(lab, near, ASKS, 4, near_serves=True, same_calls=False))


@pytest.mark.parametrize("call", ["sendfile", "recvmmsg"])
def test_the_first_call_of_a_child_may_be_any(lab: AccelLab, call: str) -> None:
    near = (
        NEAR_SERVER
        + READY
        + """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
sent = open("/etc/passwd", "rb")
data = ctypes.create_string_buffer(8)
part = (ctypes.c_void_p * 2)(ctypes.addressof(data), 8)
message = (ctypes.c_void_p * 8)(0, 0, ctypes.addressof(part), 1) # a struct mmsghdr
for _ in range(3):
    connection, peer = server.accept()
    child = os.fork()
    if child == 0:
        server.close()
"""
        + {
            "sendfile": "        print(os.sendfile(connection.fileno(), sent.fileno(), 0, 100))\n",
            "recvmmsg": "        print(libc.recvmmsg(connection.fileno(), message, 1, 0, None), data.raw)\n",
        }[call]
        + """
        os._exit(0)
    connection.close()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    )
    assert_same(both_stacks(lab, near, CALLS, 4, near_serves=True, same_calls=False))


def test_children_share_a_listener(lab: AccelLab) -> None:
    near = (
        NEAR_SERVER
        + """
server.setblocking(False)
children = []
for _ in range(2):
    child = os.fork()
    if child == 0:
        poll = select.poll()
        poll.register(server, select.POLLIN)
        while True:
            poll.poll()
            try:
                connection, peer = server.accept()
            except BlockingIOError:
                continue
            data = connection.recv(100)
            if data == b"end":
                os._exit(0)
            connection.sendall(data)
            connection.close()
    children.append(child)
"""
        + READY
        + """
print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])
"""
    )
    far = (
        ASKS
        + """
for _ in range(2):
    peer = socket.create_connection((NEAR, 5001))
    peer.sendall(b"end")
    peer.recv(1)
"""
    )
    assert_same(both_stacks(lab, near, far, 4, near_serves=True, same_calls=False))


@pytest.mark.parametrize("everywhere", [False, True])
def test_a_program_that_goes_into_the_background_keeps_its_port(lab: AccelLab, everywhere: bool) -> None:
    near = (
        NEAR_SERVER.replace("NEAR", '""' if everywhere else "NEAR")
        + """
parent = os.getpid()
if os.fork():
    os._exit(0)
while os.getppid() == parent:
    time.sleep(0.01)
server.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE)  # the port is its own behind any call
"""
        + READY
        + """
for _ in range(3):
    connection, peer = server.accept()
    connection.sendall(connection.recv(100))
    connection.close()
print("done")
"""
    )
    assert_same(both_stacks(lab, near, ASKS, 4, near_serves=True))


def test_a_child_opens_sockets_of_its_own(lab: AccelLab) -> None:
    far = (
        SERVER.replace("HERE", "FAR")
        + """
def serve(connection):
    connection.sendall(connection.recv(100))
    connection.close()
for _ in range(3):
    threading.Thread(target=serve, args=(server.accept()[0],)).start()
"""
    )
    near = """
first = socket.create_connection((FAR, 5001))
if os.fork() == 0:
    own = socket.create_connection((FAR, 5001))
    own.sendall(b"child")
    print(own.recv(100), flush=True)
    os._exit(0)
os.wait()
third = socket.create_connection((FAR, 5001))
first.sendall(b"parent")
print(first.recv(100))
third.sendall(b"again")
print(third.recv(100))
"""
    assert_same(both_stacks(lab, near, far, 4, near_serves=False, same_calls=False))


def test_programs_that_are_started_leave_connections_alone(lab: AccelLab) -> None:
    far = (
        SERVER.replace("HERE", "FAR")
        + """
connection, _ = server.accept()
while data := connection.recv(100):
    connection.sendall(data)
"""
    )
    near = """
import subprocess
peer = socket.create_connection((FAR, 5001))
for number in range(5):
    print(subprocess.run(["echo", "started"], capture_output=True, text=True).stdout)
    print(os.popen("echo by the shell").read())
    peer.sendall(b"after")
    print(peer.recv(100))
"""
    assert_same(both_stacks(lab, near, far, 4, near_serves=False))


@pytest.mark.parametrize("send", ["peer.sendall(b'question')", "os.writev(peer.fileno(), [b'question'])"])
def test_what_a_child_that_only_sends_is_answered_its_parent_reads(lab: AccelLab, send: str) -> None:
    far = (
        SERVER.replace("HERE", "FAR")
        + """
connection, _ = server.accept()
while data := connection.recv(100):
    connection.sendall(data)
"""
    )
    near = f"""
peer = socket.create_connection((FAR, 5001))
peer.settimeout(5)
for _ in range(3):
    child = os.fork()
    if child == 0:
        {send}
        time.sleep(0.2) # the answer comes while it lives
        os._exit(0)
    os.waitpid(child, 0)
    print(peer.recv(100))
reader, writer = os.pipe()
if os.fork() == 0:
    peer.sendall(b"question")
    os.write(writer, peer.recv(100)) # it asks for what has come meanwhile
    os._exit(0)
print(os.read(reader, 100))
peer.shutdown(socket.SHUT_WR)
print(peer.recv(100))
"""
    assert_same(both_stacks(lab, near, far, 4, near_serves=False, same_calls=False))


@pytest.mark.parametrize(
    "waits",
    [
        "select.select([peer], [], [])",
        "poll.register(peer, select.POLLIN); poll.poll()",
        "epoll.register(peer, select.EPOLLIN); epoll.poll()",
        "os.dup2(peer.fileno(), 0); os.execvp('head', ['head', '-c', '6'])",
        "child = os.fork(); os.execvp('true', ['true']) if not child else os.waitpid(child, 0)",
    ],
)
def test_a_child_that_has_sent_waits_for_the_answer_in_any_way(lab: AccelLab, waits: str) -> None:
    far = (
        SERVER.replace("HERE", "FAR")
        + """
connection, _ = server.accept()
connection.sendall(b"<" + connection.recv(100) + b">")
connection.recv(1)
"""
    )
    near = f"""
peer = socket.create_connection((FAR, 5001))
peer.setblocking(True)
poll, epoll = select.poll(), select.epoll()
child = os.fork()
if child == 0:
    peer.sendall(b"abcd")
    {waits}
    print(peer.recv(100), flush=True)
    os._exit(0)
print(os.waitpid(child, 0)[1])
peer.shutdown(socket.SHUT_WR)
"""
    assert_same(both_stacks(lab, near, far, 4, near_serves=False, same_calls=False))


CONNECTION_OF_A_CHILD = {
    "duplicated and closed": """
        fd = connection.detach()
        os.dup2(fd, 40)
        os.close(fd)
        serve(socket.socket(fileno=40))
""",
    "of a grandchild": """
        if os.fork() == 0:
            serve(connection)
""",
    "of a grandchild, whose parent has ended": """
        middle = os.getpid()
        if os.fork() == 0:
            while os.getppid() == middle:
                time.sleep(0.01)
            serve(connection)
""",
    "of a grandchild, which its parent has used": """
        print(connection.getpeername()[0], flush=True)
        if os.fork() == 0:
            serve(connection)
""",
    "of another user": """
        os.setgid(65534)
        os.setuid(65534)
        serve(connection)
""",
}


@pytest.mark.parametrize("how", CONNECTION_OF_A_CHILD)
def test_a_connection_is_whose_child_takes_it(lab: AccelLab, how: str) -> None:
    near = (
        NEAR_SERVER
        + READY
        + f"""
def serve(connection):
    ends = connection.getsockname()[0], connection.getpeername()[0]
    print(ends, connection.family, connection.type, flush=True)
    connection.sendall(connection.recv(100))
    os._exit(0)

for _ in range(3):
    connection, _ = server.accept()
    served, serves = os.pipe()
    if os.fork() == 0:
        server.close()
{CONNECTION_OF_A_CHILD[how]}
        os._exit(0)
    connection.close()
    os.close(serves)
    os.read(served, 1) # until all of them have ended: the connection is this process's
    os.wait()
"""
    )
    assert_same(both_stacks(lab, near, ASKS, 4, near_serves=True, same_calls=False))


STARTED = {
    "the original stays": "os.dup2(connection.fileno(), 0); os.dup2(connection.fileno(), 1)",
    "the original is closed": "fd = connection.detach(); os.dup2(fd, 0); os.dup2(fd, 1); os.close(fd)",
    "behind a read": "os.write(connection.fileno(), os.read(connection.fileno(), 1))\n"
    "        os.dup2(connection.fileno(), 0); os.dup2(connection.fileno(), 1)",
}


@pytest.mark.parametrize("how", STARTED)
def test_a_program_that_a_child_starts_has_the_connection_as_standard_input(lab: AccelLab, how: str) -> None:
    """As a super-server starts it: cat answers with what it is sent."""
    near = (
        NEAR_SERVER
        + READY
        + f"""
for _ in range(3):
    connection, _ = server.accept()
    if os.fork() == 0:
        {STARTED[how]}
        os.execv("/bin/cat", ["cat"])
    connection.close()
    print(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    )
    far = ASKS.replace('sendall(b"question")', 'sendall(b"question"); peer.shutdown(socket.SHUT_WR)')
    assert_same(both_stacks(lab, near, far, 4, near_serves=True, same_calls=False))


def test_a_program_is_started_with_a_connection_as_its_pipes(lab: AccelLab) -> None:
    near = (
        NEAR_SERVER
        + READY
        + """
import subprocess
for _ in range(3):
    connection, _ = server.accept()
    print(subprocess.run(["/bin/cat"], stdin=connection, stdout=connection).returncode)
    connection.close()
"""
    )
    far = ASKS.replace('sendall(b"question")', 'sendall(b"question"); peer.shutdown(socket.SHUT_WR)')
    assert_same(both_stacks(lab, near, far, 4, near_serves=True, same_calls=False))


IN_TURN = {
    "each waits in accept()": "connection, _ = server.accept()",
    "under a lock": """
            fcntl.flock(own, fcntl.LOCK_EX)
            connection, _ = server.accept()
            fcntl.flock(own, fcntl.LOCK_UN)
""",
    "by epoll": """
            try:
                epoll.poll()
                connection, _ = server.accept()
            except BlockingIOError:
                continue
            connection.setblocking(True)
""",
}


@pytest.mark.parametrize("bind", ["NEAR", '""'])
@pytest.mark.parametrize("how", IN_TURN)
def test_children_accept_in_turn(lab: AccelLab, how: str, bind: str) -> None:
    """All connections are served, at once and one after the other, whichever child is there for them."""
    near = (
        SERVER.replace("HERE", bind).replace('print("ready", flush=True)', "")
        + f"""
import fcntl, tempfile
lock = tempfile.NamedTemporaryFile()
server.setblocking({how != "by epoll"})
children = []
for _ in range(5):
    children.append(os.fork())
    if children[-1] == 0:
        own = open(lock.name)
        epoll = select.epoll()
        epoll.register(server, select.EPOLLIN)
        while True:
            {IN_TURN[how]}
            connection.sendall(b"hello")
            connection.close()
print("ready", flush=True)
input()
for child in children:
    os.kill(child, 9)
    os.waitpid(child, 0)
print("done")
"""
    )
    far = f"""
import concurrent.futures, collections
def ask(_):
    with socket.create_connection((NEAR, 5001), {HANG_S}) as peer:
        return peer.recv(9)
print([ask(None) for _ in range(20)] == [b"hello"] * 20)
with concurrent.futures.ThreadPoolExecutor(10) as threads:
    print(collections.Counter(threads.map(ask, range(100))))
"""
    for kernel in (True, False):
        server = lab.python(lab.near, for_family(near, 4), kernel=kernel).ready()
        assert lab.python(lab.far, for_family(far, 4)).result() == "True\nCounter({b'hello': 100})\n"
        server.tell("")
        assert server.result() == "done\n"


def test_connections_of_children_are_closed_with_the_parent(lab: AccelLab) -> None:
    """The peer hears the end, and what was sent before it."""
    near = (
        NEAR_SERVER
        + READY
        + """
connection, _ = server.accept()
sent, sends = os.pipe()
if os.fork() == 0:
    connection.sendall(b"before the end")
    os.write(sends, b"x")
    os.dup2(sent, 1) # its parent's output is not held open
    os.dup2(sent, 2)
    time.sleep(1)
    os._exit(0)
connection.close()
os.read(sent, 1)
os._exit(0)
"""
    )
    server = lab.python(lab.near, for_family(near, 4)).ready()
    far = f"""
peer = socket.create_connection((NEAR, 5001), {HANG_S})
try:
    print(peer.recv(100), peer.recv(100))
except ConnectionResetError:
    print("reset")
"""
    assert lab.python(lab.far, for_family(far, 4)).result() == "b'before the end' b''\n"
    server.result()
