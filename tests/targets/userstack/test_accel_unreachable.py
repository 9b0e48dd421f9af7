# SPDX-License-Identifier: Apache-2.0
"""Hosts that do not answer at their address: the socket of the stack hears what the kernel's would."""

from __future__ import annotations

import pytest

from tests.link import run_in
from tests.patience import HANG_S
from tests.targets.userstack.accel_lab import FAR, INTERFACE, AccelLab
from tests.targets.userstack.test_accel import SERVER, assert_same, for_family

OFF = {4: "10.98.0.77", 6: "fd98::77"}


@pytest.fixture(autouse=True)
def quick_neighbours(lab: AccelLab) -> None:
    """The kernel gives a host that does not answer up in 0.3 s, not in 3 s."""
    for family in ("ipv4", "ipv6"):
        run_in(lab.near, "sysctl", "-qw", f"net.{family}.neigh.{INTERFACE}.retrans_time_ms=100")


@pytest.mark.parametrize("first", ["", "sock.setblocking(False)\n"])
def test_a_host_that_is_off_is_unreachable(lab: AccelLab, family: int, first: str) -> None:
    """Whoever waits in connect() and whoever waits for its end hear of it, and can try again."""
    near = f"""
poll, sock = select.poll(), socket.socket(FAMILY)
def begin():
    return errno.errorcode[sock.connect_ex(({OFF[family]!r}, 5001))]
{first}print(begin())
poll.register(sock, select.POLLOUT)
# The kernel says POLLERR of IPv4 for ever: the error stands in a queue, too, which the stack has not.
print([events & ~select.POLLERR for _, events in poll.poll({HANG_S * 1000})])
print(sock.getsockopt(1, 4), sock.getsockopt(1, 4), begin())
"""
    near = for_family(near, family)
    said = [lab.python(lab.near, near, kernel=kernel).result() for kernel in (True, False)]
    assert_same(said)


def test_a_host_that_goes_off_is_told_of_while_the_connection_lives(lab: AccelLab, family: int) -> None:
    far = SERVER.replace("HERE", "FAR")
    far += "peer, _ = server.accept()\npeer.sendall(b'ok')\nsys.stdin.readline()\n"
    near = """
sock = socket.create_connection((FAR, 5001))
print(sock.recv(2), flush=True)
sys.stdin.readline()
sock.sendall(b"lost")
while not (error := sock.getsockopt(1, 4)):
    time.sleep(0.05)
print(errno.errorcode[error], sock.send(b"goes on"))
"""
    said: list[str] = []
    for kernel in (True, False):
        server = lab.python(lab.far, for_family(far, family)).ready()
        client = lab.python(lab.near, for_family(near, family), kernel=kernel)
        begun = client.line()
        run_in(lab.far, "ip", "link", "set", INTERFACE, "arp", "off")
        try:
            run_in(lab.near, "ip", "neighbour", "delete", FAR[family], "dev", INTERFACE)
            client.tell("go on")
            said.append(begun + client.result())
        finally:
            run_in(lab.far, "ip", "link", "set", INTERFACE, "arp", "on")
        server.tell("end")
    assert_same(said)
