# SPDX-License-Identifier: Apache-2.0
"""Ports that the kernel chooses, out of a few: none that a program has by the stack."""

from __future__ import annotations

import pytest

from tests.link import run_in
from tests.targets.userstack.accel_lab import FAR, NEAR, AccelLab
from tests.targets.userstack.stack import Family

FIRST, COUNT, HELD = 40000, 32, 28
SERVER_PORT = 5001
OF = f"""
FAMILY, NEAR, FAR = int(ARGUMENTS[0]), {NEAR!r}, {FAR!r}
kept = []
def made(kind):
    kept.append(socket.socket(socket.AF_INET if FAMILY == 4 else socket.AF_INET6, kind))
    if FAMILY == 6:
        kept[-1].setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    return kept[-1]
"""
HOLDS = (
    OF
    + f"""
for port in range({FIRST}, {FIRST + HELD}):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        made(kind).bind((NEAR[FAMILY], port))
        if kind == socket.SOCK_STREAM:
            kept[-1].listen()
print("ready", flush=True)
input()
"""
)
CHOOSES = (
    OF
    + f"""
def tcp_bound():
    sock = made(socket.SOCK_STREAM)
    sock.bind((NEAR[FAMILY], 0))
    said = sock.getsockname()
    sock.listen()
    assert sock.getsockname() == said
    return sock
def tcp_listens():
    sock = made(socket.SOCK_STREAM)
    sock.listen()
    return sock
def tcp_connects():
    sock = made(socket.SOCK_STREAM)
    sock.connect((FAR[FAMILY], {SERVER_PORT}))
    return sock
def udp_bound():
    sock = made(socket.SOCK_DGRAM)
    sock.bind((NEAR[FAMILY], 0))
    return sock
def udp_sends():
    sock = made(socket.SOCK_DGRAM)
    sock.sendto(b"x", (FAR[FAMILY], {SERVER_PORT}))
    return sock
def udp_connects():
    sock = made(socket.SOCK_DGRAM)
    sock.connect((FAR[FAMILY], {SERVER_PORT}))
    return sock
for choose in (tcp_bound, tcp_listens, tcp_connects, udp_bound, udp_sends, udp_connects):
    try:
        print(choose.__name__, choose().getsockname()[1])
    except OSError as error:
        print(choose.__name__, errno.errorcode[error.errno])
"""
)
SERVES = f"""
with socket.create_server(("::", {SERVER_PORT}), family=socket.AF_INET6, dualstack_ipv6=True):
    print("ready", flush=True)
    input()
"""
# A listener at a port 0 is closed, and what it has accepted goes on.
ACCEPTS = f"""
kept = []
for _ in range({COUNT} - 4):
    with socket.create_server(({NEAR[4]!r}, 0)) as server:
        print(server.getsockname()[1], flush=True)
        kept.append(server.accept()[0])
print("ready", flush=True)
input()
"""
CALLS = """
kept = []
for port in sys.stdin:
    kept.append(socket.create_connection((ARGUMENTS[0], int(port))))
"""
TAKES = """
for port in ARGUMENTS[1:]:
    with socket.socket() as sock:
        try:
            sock.bind((ARGUMENTS[0], int(port)))
            print(port, "is free")
        except OSError as error:
            assert error.errno == errno.EADDRINUSE
"""


@pytest.fixture(autouse=True)
def few_ports(lab: AccelLab) -> None:
    """Let the kernel choose out of a few."""
    run_in(lab.near, "sysctl", "-qw", f"net.ipv4.ip_local_port_range={FIRST} {FIRST + COUNT - 1}")


def test_a_port_of_another_program_is_not_chosen(lab: AccelLab, family: Family) -> None:
    """The kernel gives the number of a port of one family by the other; the service gives none twice."""
    other: Family = 6 if family == 4 else 4
    server = lab.python(lab.far, SERVES).ready()
    holder = lab.python(lab.near, HOLDS, str(other)).ready()
    chosen = dict(line.split() for line in lab.python(lab.near, CHOOSES, str(family)).result().splitlines())
    for each in (holder, server):
        each.tell("")
        each.result()
    free = {str(port) for port in range(FIRST + HELD, FIRST + COUNT)}
    assert len(chosen) == 6
    assert set(chosen.values()) <= free, chosen


def test_a_port_of_a_connection_is_not_chosen(lab: AccelLab) -> None:
    """The listener at which it came is closed: its port is nobody else's, by either stack."""
    caller = lab.python(lab.far, CALLS, NEAR[4])
    program = lab.python(lab.near, ACCEPTS)
    ports = list[str]()
    while (line := program.line()) != "ready":
        ports.append(line)
        caller.tell(line)
    assert len(set(ports)) == COUNT - 4
    assert not lab.python(lab.near, TAKES, NEAR[4], *ports, kernel=True).result()
    program.tell("")
    program.result()
