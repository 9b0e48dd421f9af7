# SPDX-License-Identifier: Apache-2.0
"""The service of the user-mode stack follows its interface, and tells programs."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from pathlib import Path

from scapy.layers.inet import IP, UDP

from tests.link import run_in
from tests.patience import wait_until
from tests.targets.link_counts import KernelShare, lost_on_link
from tests.targets.userstack.stackd_lab import ADDRESSES, INTERFACE, OWN, PEER, StackdLab, bw_stackd, ip
from tests.targets.userstack.stackd_packets import PEER_PORT, PORT, datagram, drops, outgoing


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
    # The link's losses are those of any sender: the far kernel shall have nothing of its own to send.
    run_in(lab.peer, "sysctl", "-qw", f"net.ipv6.conf.{INTERFACE}.disable_ipv6=1")
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
    counts = Counter[str]()

    def heard() -> int:
        counts["passed"] += kernel.frames()
        counts["in"], counts["lost"] = int(lab.show()["frames"]["in"]), lost_on_link(lab.peer, INTERFACE)
        return counts.total()

    wait_until(lambda: heard() >= sent, "all frames to be counted")
    assert counts.total() == sent, counts
    assert counts["passed"] == 0, f"of {sent}"
    kernel.close()


def test_a_change_of_the_interface_is_taken_after_a_look_that_failed(
    repository: Path, tmp_path: Path
) -> None:
    """The kernel has no room for an answer once: the service looks again by itself."""
    module = repository / ".build" / "linux" / "tests/targets/userstack/userstack-failing-look.so"
    lab, fails = StackdLab(bw_stackd(repository), tmp_path), tmp_path / "fails"
    lab.environment = {"LD_PRELOAD": str(module), "FAILING_LOOK": str(fails)}
    with lab:
        program = lab.connect()
        fails.touch()
        ip("-n", lab.own, "link", "set", INTERFACE, "mtu", "1400")
        program.event(lambda event: event.verb == ADDRESSES and event.mtu_bytes == 1400)
        assert not fails.exists()
