# SPDX-License-Identifier: Apache-2.0
"""Sockets that a child has closed, or may not ask for any more: what its parent and the peer see of that."""

from __future__ import annotations

import os

import pytest

from tests.patience import HANG_S
from tests.targets.userstack.accel_lab import FAR, AccelLab
from tests.targets.userstack.test_accel import SERVER, assert_same, for_family
from tests.targets.userstack.test_accel_fork import NEAR_SERVER, READY

CLOSED_BY_A_CHILD = {
    "unused": "connection.close()",
    "unused, by another in its place": "os.dup2(0, connection.fileno())",
    "behind an answer": "connection.sendall(b'answer'); connection.close()",
    "behind a question and its answer": "connection.sendall(connection.recv(100)); connection.close()",
    "by a grandchild, too": """
    if os.fork() == 0:
        connection.close()
        server.close()
        print("closed", flush=True)
        sys.stdin.read()
        os._exit(0)
    connection.close()
""",
}


@pytest.mark.parametrize("how", CLOSED_BY_A_CHILD)
def test_a_child_that_lives_on_does_not_hold_what_it_has_closed(lab: AccelLab, how: str) -> None:
    """The peer hears the end from the last one that closes the connection; new ones are refused then."""
    near = (
        NEAR_SERVER
        + READY
        + f"""
connection, _ = server.accept()
{"" if "question" in how else "connection.recv(100)"}
if os.fork() == 0:
    {CLOSED_BY_A_CHILD[how]}
    server.close()
    print("closed", flush=True)
    sys.stdin.read()
    os._exit(0)
connection.close()
server.close()
sys.stdin.read()
os._exit(0)
"""
    )
    far = f"""
peer = socket.create_connection((NEAR, 5001), {HANG_S})
peer.sendall(b"question")
answer = b""
while piece := peer.recv(100):
    answer += piece
print("ended", answer)
peer.close()
end_s = time.monotonic() + {HANG_S}
while time.monotonic() < end_s: # the listener is closed after the connection; what waits there then is reset
    try:
        socket.create_connection((NEAR, 5001), {HANG_S}).close()
    except ConnectionResetError:
        pass
    except ConnectionRefusedError:
        print("refused")
        break
"""
    said: list[str] = []
    for kernel in (True, False):
        server = lab.python(lab.near, for_family(near, 4), kernel=kernel).ready()
        said.append(lab.python(lab.far, for_family(far, 4)).result())
        assert server.result() == "closed\n" * (2 if "grandchild" in how else 1)
    assert_same(said)
    assert "refused" in said[0]


def test_who_reads_the_answer_gets_it(lab: AccelLab) -> None:
    """A program that has the connection as its output takes nothing of it."""
    far = (
        "import fcntl, termios\n"
        + SERVER.replace("HERE", "FAR")
        + """
connection, _ = server.accept()
connection.sendall(b"answer to " + connection.recv(100))
connection.shutdown(socket.SHUT_WR)
while int.from_bytes(fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4)), sys.byteorder):
    time.sleep(0.01)
print("arrived", flush=True)
connection.recv(1)
"""
    )
    script = """
exec 3<>/dev/tcp/FAR/5001
{ echo question; read line; } | cat >&3
cat <&3
"""
    said: list[tuple[str, str]] = []
    for environment in (dict(os.environ), None):
        server = lab.python(lab.far, for_family(far, 4)).ready()
        argv = ["bash", "-c", script.replace("FAR", FAR[4])]
        program = lab.start(lab.near, *argv, environment=environment)
        assert server.line() == "arrived"
        said.append(program.communicate("\n", timeout=HANG_S))
    assert said[0] == said[1] == ("answer to question\n", "")
