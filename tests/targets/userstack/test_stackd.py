# SPDX-License-Identifier: Apache-2.0
"""The service of the user-mode stack and its packet path, against the kernel's own stack at the other end."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scapy.layers import inet, inet6
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPerror, UDPerror
from scapy.layers.inet6 import ICMPv6EchoRequest, ICMPv6PacketTooBig, IPerror6, IPv6, IPv6ExtHdrFragment
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet

from tests.link import run_in
from tests.namespace import in_namespace
from tests.patience import HANG_S
from tests.targets.userstack.stack import Family
from tests.targets.userstack.stackd_lab import (
    BIND,
    HELLO,
    INTERFACE,
    NEIGHBOUR,
    OWN,
    PEER,
    RESOLVE,
    UNBIND,
    StackdLab,
    bw_stackd,
    ip,
)
from tests.targets.userstack.stackd_packets import FAMILIES, LAYER, PEER_PORT, PORT, datagram, drops, outgoing

ANY: dict[Family, str] = {4: "", 6: "::"}
AF: dict[Family, int] = {4: socket.AF_INET, 6: socket.AF_INET6}


@pytest.fixture(params=["driver", "generic"])
def lab(request: pytest.FixtureRequest, repository: Path, tmp_path: Path) -> Iterator[StackdLab]:
    options = ["--generic"] if request.param == "generic" else []
    with StackdLab(bw_stackd(repository), tmp_path, *options) as made:
        yield made


# scapy has no types of them.
fragment: Callable[..., list[Packet]] = getattr(inet, "fragment")  # noqa: B009
fragment6: Callable[..., list[Packet]] = getattr(inet6, "fragment6")  # noqa: B009


def fragments(
    family: Family, data: bytes, *, source: str = "", destination: str = "", port: int = PEER_PORT
) -> list[Packet]:
    """Return the fragments of a datagram, unless told otherwise from the program's end."""
    header = LAYER[family](src=source or OWN[family], dst=destination or PEER[family])
    whole = header / UDP(sport=PORT, dport=port) / data
    if family == 4:
        whole.id = 77
        return fragment(IP(bytes(whole)), fragsize=1480)
    packet = header / IPv6ExtHdrFragment(id=77) / IPv6(bytes(whole)).payload
    return fragment6(packet, 1500)


def joined(family: Family, frames: list[Packet]) -> bytes:
    """Return what fragments carry, in the order of their places."""
    parts: list[Any] = [frame[IP if family == 4 else IPv6ExtHdrFragment] for frame in frames]
    places = sorted((part.frag if family == 4 else part.offset, bytes(part.payload)) for part in parts)
    return b"".join(data for _, data in places)


def test_datagrams_go_both_ways(lab: StackdLab, family: Family) -> None:
    program = lab.connect()
    lab.own_port(program, socket.SOCK_DGRAM, PORT, ANY[family])
    peer = lab.socket(lab.peer, socket.SOCK_DGRAM, PEER[family], PEER_PORT)
    peer.sendto(b"question", (OWN[family], PORT))
    frame = program.take_frame()
    assert frame
    came = Ether(frame)
    assert (came.dst, bytes(came[UDP].payload)) == (lab.mac(lab.own), b"question")
    assert (program.addresses[0] + 14) % 16 == 0, "the header of IP is not aligned"
    checksum, came[UDP].chksum = came[UDP].chksum, None
    assert Ether(bytes(came))[UDP].chksum == checksum
    program.send_frame(outgoing(lab, datagram(family, b"answer")))
    assert peer.recvfrom(100)[0] == b"answer"
    header = {4: 20, 6: 40}[family]
    assert lab.show()["frames"] == {
        "in": 1,
        "out": 1,
        "bytes_in": header + 16,
        "bytes_out": header + 14,
        "drops": dict.fromkeys(lab.show()["frames"]["drops"], 0),
    }


def test_the_source_is_the_interfaces(driver_lab: StackdLab) -> None:
    program = driver_lab.connect()
    driver_lab.own_port(program, socket.SOCK_DGRAM, PORT)
    seen = driver_lab.raw(driver_lab.peer)
    program.send_frame(outgoing(driver_lab, datagram(4, b"answer")))
    while True:
        frame = Ether(seen.recv(2000))
        if UDP in frame and frame[UDP].sport == PORT:
            break
    assert frame.src == driver_lab.mac(driver_lab.own)


@pytest.mark.parametrize("option", ["driver", "generic"])
def test_jumbo_frames_go_both_ways(repository: Path, tmp_path: Path, option: str) -> None:
    """A frame over a page comes, and leaves, in several buffers."""
    options = ["--generic"] if option == "generic" else []
    with StackdLab(bw_stackd(repository), tmp_path, *options, mtu_bytes=9000) as lab:
        program = lab.connect()
        assert program.hello.mtu_bytes == 9000
        for family in FAMILIES:
            lab.own_port(program, socket.SOCK_DGRAM, PORT, OWN[family])
            program.addresses.clear()
            peer = lab.socket(lab.peer, socket.SOCK_DGRAM, PEER[family], PEER_PORT)
            data = os.urandom(9000 - {4: 28, 6: 48}[family])
            peer.sendto(data, (OWN[family], PORT))
            frame = program.take_frame()
            assert frame
            assert bytes(Ether(frame)[UDP].payload) == data
            assert len(program.addresses) == 3
            program.send_frame(outgoing(lab, datagram(family, data)))
            assert peer.recvfrom(10000)[0] == data


def test_what_nobody_owns_is_the_kernels(driver_lab: StackdLab, family: Family) -> None:
    """Another port, another protocol of the same port, another address, and what has no ports."""
    lab = driver_lab
    program = lab.connect()
    ip("-n", lab.own, "address", "add", "10.97.0.2/24", "dev", INTERFACE)
    ip("-n", lab.peer, "route", "add", "10.97.0.0/24", "dev", INTERFACE)
    lab.own_port(program, socket.SOCK_DGRAM, PORT, OWN[family])
    peer = lab.socket(lab.peer, socket.SOCK_DGRAM, PEER[family], PEER_PORT)
    other = lab.socket(lab.own, socket.SOCK_DGRAM, OWN[family], PORT + 5)
    peer.sendto(b"for the kernel", (OWN[family], PORT + 5))
    assert other.recvfrom(100)[0] == b"for the kernel"
    listener = lab.socket(lab.own, socket.SOCK_STREAM, OWN[family], PORT)
    listener.listen()
    lab.socket(lab.peer, socket.SOCK_STREAM, PEER[family], PEER_PORT).connect((OWN[family], PORT))
    run_in(lab.peer, "ping", "-q", "-c", "1", OWN[family])
    if family == 4:
        kernels = lab.socket(lab.own, socket.SOCK_DGRAM, "10.97.0.2", PORT)
        peer.sendto(b"another address", ("10.97.0.2", PORT))
        assert kernels.recvfrom(100)[0] == b"another address"
    assert program.nothing_comes()
    assert lab.show()["frames"]["in"] == 0


def test_nothing_foreign_goes_out(driver_lab: StackdLab, family: Family) -> None:
    """A program sends from its own ports and the interface's addresses alone; all else is counted."""
    lab = driver_lab
    program, other = lab.connect(), lab.connect()
    lab.own_port(program, socket.SOCK_DGRAM, PORT, ANY[family])
    lab.own_port(other, socket.SOCK_DGRAM, PORT + 1, ANY[family])
    peer = lab.socket(lab.peer, socket.SOCK_DGRAM, PEER[family], PEER_PORT)
    header = LAYER[family](src=OWN[family], dst=PEER[family])
    foreign_address = {4: "10.98.0.77", 6: "fd98::77"}[family]
    several = Ether(dst="ff:ff:ff:ff:ff:ff") / datagram(family, b"x")
    frames: dict[str, list[bytes]] = {
        "foreign_port": [outgoing(lab, datagram(family, b"x", port=port)) for port in (PORT + 1, 9)]
        + [outgoing(lab, header / TCP(sport=PORT, dport=PEER_PORT, flags="S"))],
        "foreign_address": [outgoing(lab, datagram(family, b"x", source=foreign_address))],
        "foreign_protocol": [
            outgoing(lab, ARP(psrc=OWN[4], pdst=PEER[4])),
            outgoing(lab, header / {4: ICMP(), 6: ICMPv6EchoRequest()}[family]),
            bytes(several),
        ],
        "foreign_fragment": [outgoing(lab, part) for part in fragments(family, b"y" * 2000)[1:]],
        "malformed": [
            outgoing(lab, datagram(family, b"x"))[:30],
            outgoing(lab, datagram(family, b"x"))[:-1],
            outgoing(lab, datagram(family, b"x")) + b"more",
        ],
    }
    for frame in [frame for each in frames.values() for frame in each]:
        program.send_frame(frame)
    program.send_frame(outgoing(lab, datagram(family, b"own")))
    assert peer.recvfrom(100)[0] == b"own"
    assert drops(lab) == {name: len(each) for name, each in frames.items()}
    assert lab.show()["frames"]["out"] == 1


def test_fragments_follow_their_first(lab: StackdLab) -> None:
    """Both ways: only those whose first one was of the program's port."""
    program = lab.connect()
    for family in FAMILIES:
        lab.own_port(program, socket.SOCK_DGRAM, PORT, OWN[family])
        peer = lab.socket(lab.peer, socket.SOCK_DGRAM, PEER[family], PEER_PORT)
        kernels = lab.socket(lab.own, socket.SOCK_DGRAM, OWN[family], PORT + 1)
        data = os.urandom(4000)
        peer.sendto(data, (OWN[family], PORT + 1))
        assert kernels.recvfrom(5000)[0] == data
        peer.sendto(data, (OWN[family], PORT))
        came = [Ether(program.take_frame() or b"") for _ in range(3)]
        assert joined(family, came)[8:] == data
        assert program.nothing_comes()
        for part in fragments(family, data):
            program.send_frame(outgoing(lab, part))
        assert peer.recvfrom(5000)[0] == data
        assert drops(lab) == {}


def test_fragments_with_the_number_of_an_older_packet(lab: StackdLab, family: Family) -> None:
    """Numbers come again (of IPv4 there are 65536): those of a packet for the kernel are the kernel's."""
    program = lab.connect()
    lab.own_port(program, socket.SOCK_DGRAM, PORT, OWN[family])
    kernels = lab.socket(lab.own, socket.SOCK_DGRAM, OWN[family], PORT + 1)
    raw = lab.raw(lab.peer)
    data = os.urandom(2000)
    for port in (PORT, PORT + 1, PORT):
        for part in fragments(family, data, source=PEER[family], destination=OWN[family], port=port):
            raw.send(bytes(Ether(dst=lab.mac(lab.own), src=lab.mac(lab.peer)) / part))
        if port == PORT + 1:
            assert kernels.recvfrom(5000)[0] == data
        else:
            came = [Ether(program.take_frame() or b"") for _ in range(2)]
            assert joined(family, came)[8:] == data
    assert program.nothing_comes()


def test_errors_reach_who_has_sent(driver_lab: StackdLab, family: Family) -> None:
    """The peer's kernel has no such port; a router in between says that a packet is too large."""
    lab = driver_lab
    program = lab.connect()
    lab.own_port(program, socket.SOCK_DGRAM, PORT, ANY[family])
    sent = datagram(family, b"to nobody")
    program.send_frame(outgoing(lab, sent))
    error = Ether(program.take_frame() or b"")
    assert error[{4: IPerror, 6: IPerror6}[family]].src == OWN[family]
    assert error[UDPerror].sport == PORT
    header = LAYER[family](src=PEER[family], dst=OWN[family])
    too_big = {4: ICMP(type=3, code=4, nexthopmtu=1300), 6: ICMPv6PacketTooBig(mtu=1300)}[family]
    about = {port: LAYER[family](bytes(datagram(family, b"x" * 500, port=port))) for port in (PORT, PORT + 1)}
    stolen = LAYER[family](bytes(datagram(family, b"x", source=PEER[family])))
    raw = lab.raw(lab.peer)
    for each in (about[PORT + 1], stolen, about[PORT]):
        frame = Ether(dst=lab.mac(lab.own), src=lab.mac(lab.peer)) / header / too_big / each
        raw.send(bytes(frame))
    frame = Ether(program.take_frame() or b"")
    assert (frame[UDPerror].sport, len(frame)) == (PORT, 14 + {4: 28 + 528, 6: 48 + 548}[family])
    assert program.nothing_comes()


def test_a_port_has_one_owner(driver_lab: StackdLab) -> None:
    lab = driver_lab
    first, second = lab.connect(), lab.connect()
    lab.own_port(first, socket.SOCK_DGRAM, PORT)
    shared = lab.socket(lab.own, socket.SOCK_STREAM)
    shared.bind(("", PORT))
    assert first.bind(PORT, shared) == 0
    assert second.bind(PORT, shared) == "EADDRINUSE"
    assert second.ask(UNBIND, protocol=socket.IPPROTO_TCP, port=PORT).result == "EINVAL"
    shown = [(each["protocol"], each["port"], each["pid"]) for each in lab.show()["ports"]]
    assert shown == [("tcp", PORT, os.getpid()), ("udp", PORT, os.getpid())]
    assert first.ask(UNBIND, protocol=socket.IPPROTO_TCP, port=PORT).result == 0
    assert second.bind(PORT, shared) == 0
    shared.close()
    with pytest.raises(OSError, match="in use"):
        lab.socket(lab.own, socket.SOCK_STREAM, OWN[4], PORT)
    assert second.ask(UNBIND, protocol=socket.IPPROTO_TCP, port=PORT).result == 0
    lab.socket(lab.own, socket.SOCK_STREAM, OWN[4], PORT)
    assert [each["pid"] for each in lab.show()["programs"]] == [os.getpid()] * 2


def test_any_address_of_one_family_is_of_that_alone(driver_lab: StackdLab, family: Family) -> None:
    """The same port of the other family is a server's by the kernel, until the program has that, too."""
    lab = driver_lab
    program, other = lab.connect(), FAMILIES[family == 4]
    assert program.bind(PORT, of_family_alone(lab, family)) == 0
    kernels = of_family_alone(lab, other)
    peers = {each: lab.socket(lab.peer, socket.SOCK_DGRAM, PEER[each], PEER_PORT) for each in FAMILIES}
    peers[other].sendto(b"for the kernel", (OWN[other], PORT))
    assert kernels.recvfrom(100)[0] == b"for the kernel"
    program.send_frame(outgoing(lab, datagram(other, b"x")))
    assert drops(lab) == {"foreign_port": 1}
    peers[family].sendto(b"for the program", (OWN[family], PORT))
    assert b"for the program" in (program.take_frame() or b"")
    assert program.bind(PORT, kernels) == 0
    for each in FAMILIES:
        peers[each].sendto(b"of either", (OWN[each], PORT))
        assert b"of either" in (program.take_frame() or b"")


def of_family_alone(lab: StackdLab, family: Family) -> socket.socket:
    """Return a socket of UDP on any address of one family."""
    sock = in_namespace(lab.own, lambda: socket.socket(AF[family], socket.SOCK_DGRAM))
    sock.settimeout(HANG_S)
    if family == 6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    sock.bind((ANY[family], PORT))
    return sock


def test_any_address_of_ipv6_is_of_ipv4_too(driver_lab: StackdLab) -> None:
    lab = driver_lab
    program = lab.connect()
    lab.own_port(program, socket.SOCK_DGRAM, PORT, "::")
    for family in FAMILIES:
        peer = lab.socket(lab.peer, socket.SOCK_DGRAM, PEER[family], PEER_PORT)
        peer.sendto(b"of either", (OWN[family], PORT))
        assert b"of either" in (program.take_frame() or b"")


def test_a_port_has_to_be_proved(driver_lab: StackdLab) -> None:
    lab = driver_lab
    program = lab.connect()
    ip("-n", lab.own, "address", "add", "10.96.0.1/24", "dev", "lo")
    good = lab.socket(lab.own, socket.SOCK_DGRAM, OWN[4], PORT)
    bad = {
        "unbound": lab.socket(lab.own, socket.SOCK_DGRAM),
        "another port": lab.socket(lab.own, socket.SOCK_DGRAM, OWN[4], PORT + 1),
        "TCP": lab.socket(lab.own, socket.SOCK_STREAM, OWN[4], PORT),
        "another namespace": lab.socket(lab.peer, socket.SOCK_DGRAM, "0.0.0.0", PORT),  # noqa: S104 - any fits
        "another interface": lab.socket(lab.own, socket.SOCK_DGRAM, "10.96.0.1", PORT),
    }

    def refused(*given: int, port: int = PORT) -> bool:
        answer = program.ask(BIND, given=given, protocol=socket.IPPROTO_UDP, port=port)
        return answer.result == "EINVAL"

    for why, sock in bad.items():
        assert (
            program.ask(BIND, given=[sock.fileno()], protocol=socket.IPPROTO_UDP, port=PORT).result
            == "EINVAL"
        ), why
    assert refused()
    assert refused(good.fileno(), good.fileno())
    assert refused(program.xdp)
    assert refused(bad["unbound"].fileno(), port=0)
    assert lab.show()["ports"] == []
    assert program.bind(PORT, good) == 0


def test_descriptors_do_not_pile_up(driver_lab: StackdLab) -> None:
    """Those of other verbs, of refused requests and of ports that are given back are closed.

    So may be those of the program before meanwhile; of each round at least one would stay.
    """
    lab = driver_lab
    program = lab.connect()
    sock = lab.socket(lab.own, socket.SOCK_DGRAM, OWN[4], PORT)
    folder = Path("/proc", str(lab.service.process.pid), "fd")
    before = len(list(folder.iterdir()))
    for _ in range(100):
        program.ask(RESOLVE, given=[sock.fileno()] * 3, family=socket.AF_INET)
        program.ask(HELLO, given=[sock.fileno()])
        program.ask(BIND, given=[sock.fileno()], protocol=socket.IPPROTO_UDP, port=PORT + 1)
        program.ask(BIND, given=[sock.fileno()], protocol=socket.IPPROTO_UDP, port=PORT)
        program.ask(BIND, given=[sock.fileno()], protocol=socket.IPPROTO_UDP, port=PORT)
        program.ask(UNBIND, protocol=socket.IPPROTO_UDP, port=PORT)
    assert len(list(folder.iterdir())) <= before


def test_requests_that_make_no_sense_are_refused(driver_lab: StackdLab) -> None:
    lab = driver_lab
    stranger = lab.connect(hello=False)
    assert stranger.ask(HELLO, version=77).result == "EPROTO"
    for verb in (BIND, UNBIND, RESOLVE, NEIGHBOUR, 99):
        assert stranger.ask(verb, family=socket.AF_INET).result == "EINVAL"
    stranger.connection.send(b"something else")
    assert stranger.connection.recv(100) == b""
    program = lab.connect()
    assert program.ask(HELLO).result == "EINVAL"
    assert program.ask(RESOLVE, family=77).result == "EINVAL"
    assert program.hello.addresses == [OWN[4], OWN[6], *program.hello.addresses[2:]]
    assert program.hello.mac == lab.mac(lab.own)


def test_only_the_group_may_connect(repository: Path, open_folder: Path) -> None:
    script = "import socket,sys; socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect(sys.argv[1])"
    for options, group, code in (([], 1234, 1), (["--group", "1234"], 1234, 0), (["--group", "1234"], 77, 1)):
        with StackdLab(bw_stackd(repository), open_folder, *options) as lab:
            argv = ["setpriv", "--reuid", "65534", "--regid", str(group), "--clear-groups"]
            argv += ["/usr/bin/python3", "-c", script, str(lab.socket_path)]
            done = subprocess.run(
                [*argv, "/usr/bin/python3", "-c", script, str(lab.socket_path)],
                check=False,
                capture_output=True,
            )
            assert done.returncode == code, (options, group, done.stderr)
