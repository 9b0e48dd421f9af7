# SPDX-License-Identifier: Apache-2.0
"""The service of the user-mode stack and its packet path, against the kernel's own stack at the other end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scapy.layers import inet, inet6
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPerror, UDPerror
from scapy.layers.inet6 import (
    ICMPv6EchoRequest,
    ICMPv6PacketTooBig,
    IPerror6,
    IPv6,
    IPv6ExtHdrFragment,
)
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, Raw

from tests.patience import wait_until
from tests.targets.bpf_objects import held_by, map_exists, program_exists
from tests.targets.link_counts import KernelShare, lost_on_link
from tests.targets.userstack.stack import Family
from tests.targets.userstack.stackd_lab import (
    ADDRESSES,
    BIND,
    HELLO,
    INTERFACE,
    NEIGHBOUR,
    OWN,
    PEER,
    RESOLVE,
    UNBIND,
    Answer,
    Program,
    StackdLab,
    bw_stackd,
    in_shell,
    ip,
)

PORT, PEER_PORT = 7000, 7001
FAMILIES: tuple[Family, ...] = (4, 6)
ANY: dict[Family, str] = {4: "", 6: "::"}
LAYER: dict[Family, Any] = {4: IP, 6: IPv6}


@pytest.fixture(params=["driver", "generic"])
def lab(request: pytest.FixtureRequest, repository: Path, tmp_path: Path) -> Iterator[StackdLab]:
    options = ["--generic"] if request.param == "generic" else []
    with StackdLab(bw_stackd(repository), tmp_path, *options) as made:
        yield made


@pytest.fixture
def driver_lab(repository: Path, tmp_path: Path) -> Iterator[StackdLab]:
    with StackdLab(bw_stackd(repository), tmp_path) as made:
        yield made


def outgoing(lab: StackdLab, packet: Packet) -> bytes:
    """Return a frame from the program's end to the peer; the source is the service's matter."""
    return bytes(Ether(dst=lab.mac(lab.peer), src="02:00:00:00:00:99") / packet)


def datagram(family: Family, data: bytes, *, port: int = PORT, source: str = "") -> Packet:
    header = LAYER[family](src=source or OWN[family], dst=PEER[family])
    return header / UDP(sport=port, dport=PEER_PORT) / Raw(data)


# scapy has no types of them.
fragment: Callable[..., list[Packet]] = getattr(inet, "fragment")  # noqa: B009
fragment6: Callable[..., list[Packet]] = getattr(inet6, "fragment6")  # noqa: B009


def fragments(family: Family, data: bytes) -> list[Packet]:
    """Return the fragments of a datagram from the program's end."""
    whole = datagram(family, data)
    if family == 4:
        whole.id = 77
        return fragment(IP(bytes(whole)), fragsize=1480)
    checked = IPv6(bytes(whole))
    packet = IPv6(src=OWN[6], dst=PEER[6]) / IPv6ExtHdrFragment(id=77) / checked.payload
    return fragment6(packet, 1500)


def joined(family: Family, frames: list[Packet]) -> bytes:
    """Return what fragments carry, in the order of their places."""
    parts: list[Any] = [frame[IP if family == 4 else IPv6ExtHdrFragment] for frame in frames]
    places = sorted((part.frag if family == 4 else part.offset, bytes(part.payload)) for part in parts)
    return b"".join(data for _, data in places)


def drops(lab: StackdLab) -> dict[str, int]:
    return {name: count for name, count in lab.show()["frames"]["drops"].items() if count}


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
    in_shell(lab.peer, f"ping -q -c 1 {OWN[family]} >/dev/null")
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


def test_a_port_has_to_be_proved(driver_lab: StackdLab) -> None:
    lab = driver_lab
    program = lab.connect()
    ip("-n", lab.own, "address", "add", "10.96.0.1/24", "dev", "lo")
    good = lab.socket(lab.own, socket.SOCK_DGRAM, OWN[4], PORT)
    bad = {
        "unbound": lab.socket(lab.own, socket.SOCK_DGRAM),
        "another port": lab.socket(lab.own, socket.SOCK_DGRAM, OWN[4], PORT + 1),
        "TCP": lab.socket(lab.own, socket.SOCK_STREAM, OWN[4], PORT),
        "another namespace": lab.socket(lab.peer, socket.SOCK_DGRAM, PEER[4], PORT),
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


# What ends.


def kernel_things(lab: StackdLab) -> tuple[set[int], set[int]]:
    pid = lab.service.process.pid
    return held_by(pid, "prog"), held_by(pid, "map")


def start_program(lab: StackdLab, port: int) -> subprocess.Popen[str]:
    """Start a program in a process of its own, which has a port and waits."""
    script = (
        "import sys, socket, time; from pathlib import Path\n"
        "from tests.targets.userstack.stackd_lab import Program\n"
        "program = Program(Path(sys.argv[1])); sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "sock.bind(('', int(sys.argv[2]))); assert program.bind(int(sys.argv[2]), sock) == 0\n"
        "print('ready', flush=True); program.connection.settimeout(None)\n"
        "print(repr(program.connection.recv(1)), flush=True); time.sleep(1000)\n"
    )
    argv = ["ip", "netns", "exec", lab.own, sys.executable, "-c", script, str(lab.socket_path), str(port)]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    lab.processes.append(process)
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    return process


def test_a_killed_program_leaves_nothing(driver_lab: StackdLab) -> None:
    lab = driver_lab
    before = kernel_things(lab)
    survivor = lab.connect()
    lab.own_port(survivor, socket.SOCK_DGRAM, PORT + 1)
    with_survivor, veths = kernel_things(lab), lab.veths()
    killed = start_program(lab, PORT)
    assert [each["pid"] for each in lab.show()["programs"]] == [os.getpid(), killed.pid]
    assert len(lab.veths()) == 2
    peer = lab.socket(lab.peer, socket.SOCK_DGRAM, PEER[4], PEER_PORT)
    peer.sendto(b"x", (OWN[4], PORT))
    wait_until(lambda: lab.show()["frames"]["in"] == 1, "a frame to be counted")
    killed.kill()
    killed.wait()
    wait_until(lambda: len(lab.show()["programs"]) == 1, "the program to be gone")
    assert lab.veths() == veths
    assert kernel_things(lab) == with_survivor
    assert [each["port"] for each in lab.show()["ports"]] == [PORT + 1]
    assert lab.show()["frames"]["in"] == 1, "the totals outlive programs"
    kernels = lab.socket(lab.own, socket.SOCK_DGRAM, OWN[4], PORT)
    peer.sendto(b"for the kernel again", (OWN[4], PORT))
    assert kernels.recvfrom(100)[0] == b"for the kernel again"
    peer.sendto(b"y", (OWN[4], PORT + 1))
    assert survivor.take_frame()
    survivor.close()
    wait_until(lambda: lab.veths() == [], "the veth to be gone")
    wait_until(lambda: kernel_things(lab) == before, "programs and maps to be gone")


def test_a_killed_service_leaves_nothing(driver_lab: StackdLab) -> None:
    """Although a program goes on and holds its socket, and by that the namespace; and the next one begins."""
    lab = driver_lab
    program = lab.connect()
    lab.own_port(program, socket.SOCK_DGRAM, PORT)
    waiting = start_program(lab, PORT + 1)
    programs, maps = kernel_things(lab)
    assert len(programs) == 4
    assert len(lab.veths()) == 2
    lab.service.process.send_signal(signal.SIGKILL)
    lab.service.process.wait()
    assert program.connection.recv(1) == b""
    assert waiting.stdout
    assert waiting.stdout.readline() == "b''\n"
    wait_until(lambda: lab.veths() == [], "the veths to be gone")
    wait_until(lambda: not any(map(program_exists, programs)), "the programs to be gone")
    program.close()  # a socket of AF_XDP holds the map that it is in
    waiting.kill()
    wait_until(lambda: not any(map(map_exists, maps)), "the maps to be gone")
    assert lab.socket_path.exists()
    lab.serve()
    again = lab.connect()
    assert again.bind(PORT, lab.socket(lab.own, socket.SOCK_DGRAM, OWN[6], PORT)) == 0


def test_what_is_left_by_a_service_without_its_guard_is_removed(driver_lab: StackdLab) -> None:
    lab = driver_lab
    lab.connect()
    pid = lab.service.process.pid
    (guard,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    os.kill(int(guard), signal.SIGKILL)
    lab.service.process.kill()
    lab.service.process.wait()
    assert len(lab.veths()) == 1
    lab.serve()
    assert lab.veths() == []
    lab.connect()


def test_a_service_ends_in_order(driver_lab: StackdLab) -> None:
    lab = driver_lab
    program = lab.connect()
    lab.service.stop()
    assert lab.service.process.wait() == 0
    assert program.connection.recv(1) == b""
    assert not lab.socket_path.exists()
    assert lab.veths() == []
    assert "xdp" not in lab.links(lab.own)[INTERFACE]


def test_a_service_that_cannot_begin_says_why(driver_lab: StackdLab) -> None:
    lab = driver_lab
    for options, code, text in (
        (["--interface", INTERFACE, "--socket", "other"], 3, "another XDP program is there"),
        (["--interface", "nothing"], 3, "no such interface"),
        ([], 2, "--interface: missing"),
    ):
        tool = lab.start("serve", *options)
        assert tool.process.wait() == code
        assert text in tool.errors()
    ip("-n", lab.own, "link", "delete", INTERFACE)
    assert lab.service.process.wait() == 5
    assert "the interface has gone" in lab.service.errors()


# Ways to addresses.


@pytest.fixture
def program(driver_lab: StackdLab) -> Program:
    """A program, where neighbours that do not answer are given up at once."""
    limits = ("mcast_solicit", 1), ("ucast_solicit", 1), ("retrans_time_ms", 50)
    places = [f"net.{family}.neigh.{INTERFACE}" for family in ("ipv4", "ipv6")]
    keys = [f"{place}.{name}={value}" for place in places for name, value in limits]
    in_shell(driver_lab.own, f"sysctl -q {' '.join(keys)}")
    return driver_lab.connect()


def of(address: str, *, reachable: bool = False) -> Callable[[Answer], bool]:
    """Return what wants an event of an address, one that says where it is if so told."""
    return lambda event: event.verb == NEIGHBOUR and event.ip == address and not (reachable and event.result)


def test_ways_that_are_the_kernels(driver_lab: StackdLab, program: Program) -> None:
    lab = driver_lab
    ip("-n", lab.own, "link", "add", "u1", "type", "veth", "peer", "u2")
    for name in ("u1", "u2"):
        ip("-n", lab.own, "link", "set", name, "up")
    for family in FAMILIES:
        loopback = {4: "127.0.0.1", 6: "::1"}[family]
        several = {4: "10.98.0.255", 6: "ff02::1"}[family]
        assert program.resolve(loopback).result == "EREMOTE"
        assert program.resolve(OWN[family]).result == "EREMOTE"
        assert program.resolve(several).result == "EREMOTE"
        far = {4: "10.50.0.1", 6: "fd50::1"}[family]
        assert program.resolve(far).result == "ENETUNREACH"
        ip("-n", lab.own, f"-{family}", "route", "add", far, "dev", "u1")
        assert program.event(of(far)).result == "EREMOTE"
        assert program.resolve(far).result == "EREMOTE"


def test_neighbours_are_asked(driver_lab: StackdLab, program: Program) -> None:
    lab = driver_lab
    for family in FAMILIES:
        assert program.resolve(PEER[family]).result == "EINPROGRESS"
        event = program.event(of(PEER[family]))
        assert (event.number, event.result, event.mac) == (0, 0, lab.mac(lab.peer))
        assert event.source == OWN[family]
        answer = program.resolve(PEER[family])
        assert (answer.result, answer.mac, answer.source) == (0, lab.mac(lab.peer), OWN[family])
        nobody = {4: "10.98.0.9", 6: "fd98::9"}[family]
        assert program.resolve(nobody).result == "EINPROGRESS"
        assert program.event(of(nobody)).result == "EHOSTUNREACH"
        assert program.resolve(nobody).result == "EINPROGRESS", "it is asked again"
        assert program.event(of(nobody)).result == "EHOSTUNREACH"


def test_ways_over_a_gateway_change(driver_lab: StackdLab, program: Program) -> None:
    lab = driver_lab
    for family in FAMILIES:
        far = {4: "10.50.0.1", 6: "fd50::1"}[family]
        routes = ["-n", lab.own, f"-{family}", "route"]
        ip(*routes, "add", far, "via", PEER[family])
        program.resolve(far)
        assert program.event(of(far)).mac == lab.mac(lab.peer)
        ip(*routes, "delete", far)
        assert program.event(of(far)).result == "ENETUNREACH"
        ip(*routes, "add", far, "via", PEER[family])
        assert program.event(of(far, reachable=True)).mac == lab.mac(lab.peer)


def test_rules_that_choose_another_table_change_ways(driver_lab: StackdLab, program: Program) -> None:
    lab = driver_lab
    for family in FAMILIES:
        far = {4: "10.50.0.1", 6: "fd50::1"}[family]
        ip("-n", lab.own, f"-{family}", "route", "add", far, "via", PEER[family])
        program.resolve(far)
        assert program.event(of(far)).mac == lab.mac(lab.peer)
        rules = ["-n", lab.own, f"-{family}", "rule"]
        ip(*rules, "add", "to", far, "prohibit")
        assert program.event(of(far)).result == "ENETUNREACH"
        ip(*rules, "delete", "to", far, "prohibit")
        assert program.event(of(far, reachable=True)).mac == lab.mac(lab.peer)


def test_a_neighbour_that_moves_is_told(driver_lab: StackdLab, program: Program, family: Family) -> None:
    lab = driver_lab
    program.resolve(PEER[family])
    program.event(of(PEER[family]))
    moved = "02:00:00:00:12:34"
    ip("-n", lab.peer, "link", "set", INTERFACE, "address", moved)
    ip("-n", lab.peer, "neighbour", "flush", "dev", INTERFACE)
    in_shell(lab.peer, f"ping -q -c 1 {OWN[family]} >/dev/null")
    assert program.event(lambda event: of(PEER[family])(event) and event.mac == moved).result == 0
    assert program.resolve(PEER[family]).mac == moved


def test_an_address_that_makes_room_for_others_is_told(driver_lab: StackdLab, program: Program) -> None:
    """Those without a way go first, as after a flood; of the others the program goes on to hear."""
    lab = driver_lab
    program.resolve(PEER[6])
    program.event(of(PEER[6], reachable=True))
    nobodies = [f"fd98::f:{each:x}" for each in range(400)]
    for address in nobodies:
        assert program.resolve(address).result == "EINPROGRESS"
    ends: dict[str, int | str] = {}
    while len(ends) < len(nobodies):  # each has its event: no answer, or that it is forgotten
        event = program.event(lambda event: event.ip in nobodies and event.ip not in ends)
        ends[event.ip] = event.result
    assert set(ends.values()) <= {"ENOENT", "EHOSTUNREACH"}
    assert "ENOENT" in ends.values()
    moved = "02:00:00:00:12:35"
    ip("-n", lab.own, "neighbour", "replace", PEER[6], "lladdr", moved, "dev", INTERFACE)
    program.event(lambda event: event.ip == PEER[6] and event.mac == moved)


@pytest.mark.slow
def test_a_neighbour_that_is_fixed_stays_so(driver_lab: StackdLab, program: Program) -> None:
    """That others are confirmed, every 30 s, makes it no other."""
    lab = driver_lab
    fixed = {4: "10.98.0.77", 6: "fd98::77"}
    for family in FAMILIES:
        for address, state in ((fixed[family], "permanent"), (PEER[family], "stale")):
            place = [address, "lladdr", lab.mac(lab.peer), "dev", INTERFACE, "nud", state]
            ip("-n", lab.own, "neighbour", "replace", *place)
            assert program.resolve(address).result == 0

    def state_of(address: str) -> str:
        argv = ["ip", "-n", lab.own, "neighbour", "show", address]
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split()[-1]

    for family in FAMILIES:
        wait_until(lambda address=PEER[family]: state_of(address) != "STALE", "neighbours to be confirmed")
        assert state_of(fixed[family]) == "PERMANENT"


def test_the_interface_changes(driver_lab: StackdLab) -> None:
    """Programs hear of addresses and MTU, and the path keeps to them."""
    lab = driver_lab
    program = lab.connect()
    lab.own_port(program, socket.SOCK_DGRAM, PORT)
    ip("-n", lab.own, "link", "set", INTERFACE, "mtu", "1400")
    assert program.event(lambda event: event.verb == ADDRESSES and event.mtu_bytes == 1400)
    assert lab.links(lab.own)[lab.veths()[0]]["mtu"] == 1400
    ip("-n", lab.own, "address", "delete", f"{OWN[4]}/24", "dev", INTERFACE)
    program.event(lambda event: event.verb == ADDRESSES and OWN[4] not in event.addresses)
    program.send_frame(outgoing(lab, datagram(4, b"x")))
    assert drops(lab) == {"foreign_address": 1}
    ip("-n", lab.own, "address", "add", "10.98.0.3/24", "dev", INTERFACE)
    program.event(lambda event: event.verb == ADDRESSES and event.addresses[0] == "10.98.0.3")
    peer = lab.socket(lab.peer, socket.SOCK_DGRAM, PEER[4], PEER_PORT)
    program.send_frame(outgoing(lab, datagram(4, b"x", source="10.98.0.3")))
    assert peer.recvfrom(100)[1] == ("10.98.0.3", PORT)
    ip("-n", lab.own, "link", "set", INTERFACE, "address", "02:00:00:00:56:78")
    event = program.event(lambda event: event.verb == ADDRESSES and event.mac == "02:00:00:00:56:78")
    assert event.interface_index == program.hello.interface_index
    peer.sendto(b"to the new one", ("10.98.0.3", PORT))
    assert b"to the new one" in (program.take_frame() or b"")


def test_an_address_that_stays_is_never_the_kernels(driver_lab: StackdLab) -> None:
    """While others come and go all packets to it go to the program."""
    lab = driver_lab
    program = lab.connect()
    lab.own_port(program, socket.SOCK_DGRAM, PORT)
    sender = bytes.fromhex("0200000000f1")
    raw, kernel = lab.raw(lab.peer), KernelShare(lab.own, INTERFACE, sender)
    mac = bytes.fromhex(lab.mac(lab.own).replace(":", ""))
    packet = IP(src=PEER[4], dst=OWN[4]) / UDP(sport=PEER_PORT, dport=PORT) / b"x"
    frame = mac + sender + b"\x08\x00" + bytes(packet)
    sent, changed = 0, threading.Event()

    def send() -> None:
        nonlocal sent
        while not changed.is_set():
            raw.send(frame)
            sent += 1

    sending = threading.Thread(target=send)
    sending.start()
    try:
        for verb in ("add", "delete") * 50:
            ip("-n", lab.own, "address", verb, "fd98::77/64", "dev", INTERFACE)
            program.event(lambda event: event.verb == ADDRESSES)
    finally:
        changed.set()
        sending.join()
    passed = 0

    def heard() -> int:
        nonlocal passed
        passed += kernel.frames()
        return int(lab.show()["frames"]["in"]) + passed + lost_on_link(lab.peer, INTERFACE)

    wait_until(lambda: heard() == sent, "all frames to be counted")
    assert passed == 0, f"of {sent}"
    kernel.close()
