# SPDX-License-Identifier: Apache-2.0
"""Programs of an interface with several addresses: which serve, and which they send from; another MTU."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.link import kernel_counts
from tests.patience import HANG_S, wait_until
from tests.targets.userstack.accel_lab import INTERFACE, NEAR, AccelLab
from tests.targets.userstack.test_accel import SERVER, assert_same, both_stacks, for_family

SECOND, BESIDE = "10.98.0.11", "10.99.0.1"
"""At the near end: of the same network as the first one, and of another."""
FAR_BESIDE = "10.99.0.2"
MANY = [f"10.98.0.{number}" for number in range(101, 120)]


def address(namespace: str, verb: str, ip: str, prefix: int = 24) -> None:
    argv = ["ip", "-n", namespace, "address", verb, f"{ip}/{prefix}", "dev", INTERFACE]
    subprocess.run(argv, check=True, capture_output=True, timeout=HANG_S)


@pytest.fixture(scope="module")
def lab(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccelLab]:
    with AccelLab(repository / ".build/linux", tmp_path_factory.mktemp("addresses")) as made:
        for namespace, ip in ((made.near, SECOND), (made.near, BESIDE), (made.far, FAR_BESIDE)):
            address(namespace, "add", ip)
        yield made


def test_a_server_and_a_client_of_each_address(lab: AccelLab) -> None:
    near = f"""
ips = [NEAR, {SECOND!r}, {BESIDE!r}]
servers = [socket.create_server((ip, 5001)) for ip in ips]
print("ready", flush=True)
conns = [server.accept()[0] for server in servers]
print([(conn.recv(100), conn.getsockname()) for conn in conns])
for ip in ips:
    conns.append(socket.create_connection((FAR, 5002), source_address=(ip, 0)))
    print(conns[-1].getsockname()[0], conns[-1].recv(100))
"""
    far = f"""
server = socket.create_server((FAR, 5002))
peers = [socket.create_connection((ip, 5001)) for ip in (NEAR, {SECOND!r}, {BESIDE!r})]
for peer in peers:
    peer.sendall(peer.getpeername()[0].encode())
for _ in peers:
    peer, (ip, _) = server.accept()
    peer.sendall(ip.encode())
"""
    assert_same(both_stacks(lab, near, far, 4, near_serves=True))


@pytest.mark.parametrize("connected", [False, True])
def test_datagrams_leave_from_the_address_that_the_routes_say(lab: AccelLab, connected: bool) -> None:
    far = f"""
socks = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
for sock, ip in zip(socks, (FAR, {FAR_BESIDE!r})):
    sock.bind((ip, 5003))
print("ready", flush=True)
for _ in range(4):
    for sock in select.select(socks, [], [])[0]:
        _, peer = sock.recvfrom(100)
        sock.sendto(peer[0].encode(), peer)
"""
    new = "sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)"
    each = f"{new}; sock.connect((ip, 5003)); print(sock.getsockname()[0]); sock.send(b'x')"
    near = f"""
{new}
sock.bind(("", 0))
for ip in (FAR, {FAR_BESIDE!r}, FAR, {FAR_BESIDE!r}):
    {each if connected else "sock.sendto(b'x', (ip, 5003))"}
    print(sock.recvfrom(100))
"""
    said = both_stacks(lab, near, far, 4, near_serves=False)
    assert_same(said)
    assert NEAR[4] in said[0]
    assert BESIDE in said[0]


def test_datagrams_of_a_bound_address(lab: AccelLab) -> None:
    near = f"""
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind(({SECOND!r}, 5004))
print("ready", flush=True)
data, peer = sock.recvfrom(100)
print(data, peer[0])
sock.sendto(b"answer", peer)
"""
    far = f"""
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.connect(({SECOND!r}, 5004))
sock.send(b"question")
print(sock.recv(100))
"""
    assert_same(both_stacks(lab, near, far, 4, near_serves=True))


def test_an_address_that_is_removed_while_it_is_used(lab: AccelLab) -> None:
    """Its connection ends, those of others go on; once it is back it serves again."""
    address(lab.near, "add", "10.98.0.12")
    near = """
conns = []
for ip in ("10.98.0.12", NEAR):
    with socket.create_server((ip, 5005)) as server:
        if not conns:
            print("ready", flush=True)
        conns.append(server.accept()[0])
print("connected", flush=True)
try:
    conns[0].recv(100)
except OSError as error:
    print("ended", error.errno in (errno.ECONNABORTED, errno.ETIMEDOUT), flush=True)
print(conns[1].recv(100), flush=True)
input()
again = socket.create_server(("10.98.0.12", 5006))
print("again", flush=True)
print(again.accept()[0].recv(100))
"""
    far = """
def connect(ip, port):
    while True:
        try:
            return socket.create_connection((ip, port))
        except ConnectionRefusedError:
            pass
peers = [connect(ip, 5005) for ip in ("10.98.0.12", NEAR)]
print("connected", flush=True)
input()
peers[1].sendall(b"goes on")
input()
socket.create_connection(("10.98.0.12", 5006)).sendall(b"once more")
"""
    server = lab.python(lab.near, for_family(near, 4)).ready()
    client = lab.python(lab.far, for_family(far, 4), kernel=True)
    assert (server.line(), client.line()) == ("connected", "connected")
    address(lab.near, "delete", "10.98.0.12")
    assert server.line() == "ended True"
    client.tell("")
    assert server.line() == "b'goes on'"
    address(lab.near, "add", "10.98.0.12")
    server.tell("")
    assert server.line() == "again"
    client.tell("")
    client.result()
    assert server.result() == "b'once more'\n"
    address(lab.near, "delete", "10.98.0.12")


def test_addresses_beyond_sixteen_are_the_kernels(lab: AccelLab) -> None:
    near = SERVER.replace("HERE", "ARGUMENTS[0]") + "print(server.accept()[0].recv(100))\ninput()\n"
    far = "socket.create_connection((ARGUMENTS[0], 5001)).sendall(b'x')"
    for ip in MANY:
        address(lab.near, "add", ip)
    carried: list[bool] = []
    for ip in (MANY[0], MANY[-1]):
        server = lab.python(lab.near, for_family(near, 4), ip).ready()
        carried.append(bool(lab.show()["ports"]))
        lab.python(lab.far, far, ip, kernel=True).result()
        assert server.line() == "b'x'"
        server.tell("")
        server.result()
        wait_until(lambda: not lab.show()["programs"], "the program to end")
    assert carried == [True, False]
    for ip in MANY:
        address(lab.near, "delete", ip)


def test_all_three_addresses_of_ipv6_serve(lab: AccelLab) -> None:
    """A program has a port on all of them, so the kernel's stack gets no packet of any."""
    near = SERVER.replace("HERE", "'::'").replace("FAMILY", "socket.AF_INET6")
    near += "for _ in range(3):\n    print(server.accept()[0].getsockname()[0], flush=True)\n"
    own = [NEAR[6], "fd98::11", "fd99::1"]
    for ip in own[1:]:
        address(lab.near, "add", ip, 64)
    wait_until(lambda: not tentative(lab.near), "addresses to be there")
    server = lab.python(lab.near, near).ready()
    subprocess.run(["ip", "-n", lab.far, "route", "add", "fd99::/64", "dev", INTERFACE], check=True)
    for ip in own:
        lab.python(lab.far, f"socket.create_connection(({ip!r}, 5001), {HANG_S})", kernel=True).result()
        assert server.line() == ip
    server.result()
    for ip in own[1:]:
        address(lab.near, "delete", ip, 64)


def tentative(namespace: str) -> bytes:
    argv = ["ip", "-n", namespace, "address", "show", "dev", INTERFACE, "tentative"]
    return subprocess.run(argv, check=True, capture_output=True, timeout=HANG_S).stdout


ONE_FAMILY = """
def server_of(family):
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    sock.bind(("", 5008))
    sock.listen(8)
    return sock
"""


def test_the_same_port_of_the_other_family_is_another_programs(lab: AccelLab, family: int) -> None:
    """A server on any address of one family takes nothing from one of the other by the kernel's stack."""
    near = (
        ONE_FAMILY
        + "server = server_of(FAMILY)\nprint('ready', flush=True)\n"
        + "print(server.accept()[0].recv(100), flush=True)\ninput()\n"
    )
    far = f"socket.create_connection((ARGUMENTS[0], 5008), {HANG_S}).sendall(ARGUMENTS[0].encode())"
    servers = {each: lab.python(lab.near, for_family(near, each), kernel=each != family) for each in (4, 6)}
    for server in servers.values():
        assert server.line() == "ready"
    for each, server in servers.items():
        lab.python(lab.far, far, NEAR[each], kernel=True).result()
        assert server.line() == f"{NEAR[each].encode()!r}"
    for server in servers.values():
        server.tell("")
        server.result()


@pytest.mark.parametrize("first", [4, 6])
def test_a_server_of_each_family_and_one_of_both(lab: AccelLab, first: int) -> None:
    """In one program: both families come by the stack, whichever was opened first, and later on."""
    near = (
        ONE_FAMILY
        + """
families = [FAMILY, *({socket.AF_INET, socket.AF_INET6} - {FAMILY})]
servers = [server_of(families[0])]
print("ready", flush=True)
peers = [servers[0].accept()[0]]
servers.append(server_of(families[1]))
print("both", flush=True)
for _ in families:
    sock = select.select(servers, [], [])[0][0]
    peers.append(sock.accept()[0])
for sock in servers + peers:
    sock.close()
server = socket.create_server(("::", 5008), family=socket.AF_INET6, dualstack_ipv6=True)
print("one", flush=True)
for _ in families:
    server.accept()
print("done", flush=True)
"""
    )
    far = f"socket.create_connection((ARGUMENTS[0], 5008), {HANG_S})"

    def connect(family: int) -> None:
        lab.python(lab.far, far, NEAR[family], kernel=True).result()

    before = kernel_counts(lab.near)
    server = lab.python(lab.near, for_family(near, first)).ready()
    connect(first)
    for said in ("both", "one"):
        assert server.line() == said
        for family in (4, 6):
            connect(family)
    assert server.line() == "done"
    server.result()
    assert kernel_counts(lab.near)["Tcp:InSegs"] == before["Tcp:InSegs"]


@pytest.mark.parametrize("mtu_bytes", [1400, 1000])
def test_a_stream_goes_on_with_a_smaller_mtu(lab: AccelLab, mtu_bytes: int) -> None:
    """One that is open when the interface's MTU becomes smaller, and one that is opened then."""
    near = """
for _ in range(2):
    conn = socket.create_connection((FAR, 5007))
    conn.sendall(bytes(100000))
    print("half", flush=True)
    input()
    conn.sendall(bytes(1000000))
    conn.shutdown(socket.SHUT_WR)
    print(conn.recv(100), flush=True)
"""
    far = """
server = socket.create_server((FAR, 5007))
print("ready", flush=True)
for _ in range(2):
    conn = server.accept()[0]
    size = 0
    while piece := conn.recv(1 << 16):
        size += len(piece)
    conn.sendall(str(size).encode())
"""
    lab.python(lab.far, for_family(far, 4), kernel=True).ready()
    client = lab.python(lab.near, for_family(near, 4))
    try:
        for _ in range(2):
            assert client.line() == "half"
            set_mtu(lab.near, mtu_bytes)
            client.tell("")
            assert client.line() == "b'1100000'"
    finally:
        set_mtu(lab.near, 1500)


def set_mtu(namespace: str, mtu_bytes: int) -> None:
    subprocess.run(["ip", "-n", namespace, "link", "set", INTERFACE, "mtu", str(mtu_bytes)], check=True)


def test_the_same_port_of_another_address_is_another_programs(lab: AccelLab) -> None:
    """What a program has on one address takes nothing from a program by the kernel's stack."""
    near = (
        SERVER.replace("HERE", "ARGUMENTS[0]") + "print(server.accept()[0].recv(100), flush=True)\ninput()\n"
    )
    far = "socket.create_connection((ARGUMENTS[0], 5001)).sendall(ARGUMENTS[0].encode())"
    servers = {
        NEAR[4]: lab.python(lab.near, for_family(near, 4), NEAR[4]),
        SECOND: lab.python(lab.near, for_family(near, 4), SECOND, kernel=True),
    }
    for ip, server in servers.items():
        assert server.line() == "ready"
        lab.python(lab.far, far, ip, kernel=True).result()
        assert server.line() == f"{ip.encode()!r}"
    for server in servers.values():
        server.tell("")
        server.result()
