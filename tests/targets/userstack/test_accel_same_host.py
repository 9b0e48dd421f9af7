# SPDX-License-Identifier: Apache-2.0
"""What a host sends to itself, to all and to groups goes by the kernel, whatever a socket is bound to."""

from __future__ import annotations

import sys

import pytest

from tests.link import kernel_counts, run_in
from tests.patience import HANG_S, wait_until
from tests.targets.userstack.accel_lab import FAR, INTERFACE, NEAR, AccelLab, Started
from tests.targets.userstack.test_accel import for_family

GROUP = "239.1.2.3"
BIND_TO = {"its address": NEAR, "any": {4: "0.0.0.0", 6: "::"}}  # noqa: S104 - of namespaces that the test makes
SERVE = """
sock = socket.socket(FAMILY, socket.SOCK_STREAM)
sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
sock.bind((ARGUMENTS[0], 5001))
sock.listen()
print("ready", flush=True)
"""
ACCEPTS = {
    "accept": "wait = lambda: None\n",
    "poll": "poll = select.poll(); poll.register(sock, select.POLLIN); wait = poll.poll\n",
    "epoll": "epoll = select.epoll(); epoll.register(sock, select.EPOLLIN); wait = epoll.poll\n",
}
ANSWER = """
for _ in range(3):
    wait()
    peer, (ip, *_) = sock.accept()
    print(ip, flush=True)
    peer.sendall(peer.recv(9))
"""
ASK = f"""
sock = socket.create_connection((ARGUMENTS[0], 5001), {HANG_S})
sock.sendall(b"ping")
print(sock.recv(9))
"""


@pytest.mark.parametrize("bound", BIND_TO)
@pytest.mark.parametrize("how", ACCEPTS)
def test_a_server_is_asked_from_its_own_host_and_from_another(
    lab: AccelLab, family: int, bound: str, how: str
) -> None:
    text = for_family(SERVE + ACCEPTS[how] + ANSWER, family)
    server = lab.python(lab.near, text, BIND_TO[bound][family]).ready()
    for namespace, kernel, ip in (
        (lab.near, True, NEAR),
        (lab.far, True, FAR),
        (lab.near, False, NEAR),
    ):
        asked = lab.python(namespace, ASK, NEAR[family], kernel=kernel)
        assert asked.result() == "b'ping'\n"
        assert server.line() == ip[family]
    server.result()
    wait_until(lambda: not lab.show()["programs"], "the programs to end")


DATAGRAMS = """
sock = socket.socket(FAMILY, socket.SOCK_DGRAM)
sock.bind((ARGUMENTS[0], 5002))
print("ready", flush=True)
for _ in range(3):
    data, peer = sock.recvfrom(9)
    print(peer[0], flush=True)
    sock.sendto(data, peer)
"""
ASK_BY_DATAGRAM = f"""
sock = socket.socket(FAMILY, socket.SOCK_DGRAM)
sock.settimeout({HANG_S})
sock.sendto(b"ping", (NEAR, 5002))
print(sock.recvfrom(9)[1][0])
"""


@pytest.mark.parametrize("bound", BIND_TO)
def test_datagrams_come_from_its_own_host_and_from_another(lab: AccelLab, family: int, bound: str) -> None:
    server = lab.python(lab.near, for_family(DATAGRAMS, family), BIND_TO[bound][family]).ready()
    for namespace, kernel, ip in (
        (lab.near, True, NEAR),
        (lab.far, True, FAR),
        (lab.near, False, NEAR),
    ):
        asked = lab.python(namespace, for_family(ASK_BY_DATAGRAM, family), kernel=kernel)
        assert asked.result() == f"{NEAR[family]}\n"
        assert server.line() == ip[family]
    server.result()
    wait_until(lambda: not lab.show()["programs"], "the programs to end")


TO_ALL = {"link": "255.255.255.255", "network": "10.98.0.255", "group": GROUP}
FIRST = {
    "nothing": "",
    "bound": "sock.bind((NEAR, 5003))\n",
    "bound to any": "sock.bind(('', 5003))\n",
    "sent to one": "sock.sendto(b'u', (FAR, 9))\n",
    "connected": "sock.connect((FAR, 9))\n",
}


@pytest.fixture(scope="module")
def default_route(lab: AccelLab) -> None:
    """Without one a socket without an address of its own reaches neither groups nor all of a link."""
    run_in(lab.near, "ip", "route", "add", "default", "dev", INTERFACE)


@pytest.mark.usefixtures("default_route")
@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("to", TO_ALL)
def test_what_goes_to_all_leaves(lab: AccelLab, to: str, first: str) -> None:
    """As by the kernel, from the port that the socket has."""
    far = f"""
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind(("", 5004))
groups = socket.inet_aton({GROUP!r}) + socket.inet_aton(FAR)
sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, groups)
sock.settimeout({HANG_S})
print("ready", flush=True)
data, peer = sock.recvfrom(9)
print(data, peer[0], peer[1] == int(sys.stdin.readline()))
"""
    near = f"""
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
{FIRST[first]}
print(sock.sendto(b"discover", ({TO_ALL[to]!r}, 5004)))
print(sock.getsockname()[1])
"""
    said: list[str] = []
    for kernel in (True, False):
        listener = lab.python(lab.far, for_family(far, 4)).ready()
        sent, port = lab.python(lab.near, for_family(near, 4), kernel=kernel).result().split()
        assert sent == "8"
        listener.tell(port)
        said.append(listener.result())
    assert said == [f"b'discover' {NEAR[4]} True\n"] * 2


def test_a_server_of_datagrams_is_a_member_of_a_group(lab: AccelLab) -> None:
    """What comes to the group comes by the kernel, to it alone by the stack; it may leave again."""
    near = f"""
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind(("", 5005))
groups = socket.inet_aton({GROUP!r}) + socket.inet_aton(NEAR)
sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, groups)
sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(NEAR))
sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 3)
print("ready", flush=True)
print(sorted(sock.recv(9) for _ in range(2)))
sock.setsockopt(socket.IPPROTO_IP, socket.IP_DROP_MEMBERSHIP, groups)
"""
    far = f"""
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind((FAR, 0))
for ip in ({GROUP!r}, NEAR):
    sock.sendto(ip.encode()[:9], (ip, 5005))
"""
    server = lab.python(lab.near, for_family(near, 4)).ready()
    lab.python(lab.far, for_family(far, 4)).result()
    assert server.result() == f"{sorted([GROUP.encode(), NEAR[4].encode()])}\n"


@pytest.mark.parametrize("bound", [NEAR[4], ""])
def test_only_names_a_port_of_ours_and_what_goes_from_it_is_the_stack_s(lab: AccelLab, bound: str) -> None:
    """Whatever the other end's port is."""
    near = f"""
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind(({bound!r}, 5006))
sock.sendto(b"question", (FAR, 5007))
print(sock.recvfrom(9))
stream = socket.socket()
stream.bind((NEAR, 5006))
stream.connect((FAR, 5008))
print(stream.recv(9))
"""
    far = """
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind((FAR, 5007))
server = socket.create_server((FAR, 5008))
print("ready", flush=True)
sock.sendto(b"answer", sock.recvfrom(9)[1])
server.accept()[0].sendall(b"stream")
"""
    server = lab.python(lab.far, for_family(far, 4)).ready()
    before = kernel_counts(lab.near)
    (lab.folder / "only.py").write_text("import socket\n" + for_family(near, 4))
    environment = lab.near_environment(BW_ACCEL_ONLY="5006")
    client = Started(
        lab.start(lab.near, sys.executable, str(lab.folder / "only.py"), environment=environment)
    )
    assert client.result() == f"(b'answer', ('{FAR[4]}', 5007))\nb'stream'\n"
    server.result()
    after = kernel_counts(lab.near)
    for name in ("Udp:OutDatagrams", "Udp:InDatagrams", "Tcp:OutSegs"):
        assert after[name] == before[name]
