# SPDX-License-Identifier: Apache-2.0
"""Namespaces, switch and links of the virtual bench.

One namespace is the switch; it holds three bridges: `br-test` (the test network), `br-control` (the control
network, never impaired) and `br-impair` (ports of producers whose way to the target leads through the
impairment guest). Each producer has a namespace with one link; guests are attached by taps. Nothing touches
an interface of the machine itself.
"""

from __future__ import annotations

import ipaddress
import os
import signal
import subprocess
import time
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hw import reservation
from hw.bench import VirtualSpec
from hw.errors import BenchError

EXPEDITED_DSFIELD = 46 << 2
"""DSCP 46, expedited forwarding, in its place in the IP header."""

RTDIP_HIGH = "protocol 0x88b5 u32 match u8 0 0xff at 2"
"""Frames of RTDiP of high priority, as a filter: EtherType, and priority 0 in the third byte."""

SWITCH_BRIDGES = ("br-test", "br-control", "br-impair")

# Per-namespace settings of a data producer: bursts that come 2 to 12 times a second must not fall back to
# slow start. BBR, which some machines have as default, shrinks its window to 4 packets for 200 ms every 10 s
# (PROBE_RTT): a 640 KB message that falls into that takes 50 to 130 ms.
PRODUCER_SYSCTLS = {
    "net.ipv4.tcp_congestion_control": "cubic",
    "net.ipv4.tcp_slow_start_after_idle": "0",
    "net.ipv4.tcp_no_metrics_save": "1",
    "net.ipv4.tcp_wmem": "4096 1048576 8388608",
}


def run(*argv: str, stdin: str = "") -> str:
    """Run a command of this machine and return its stdout.

    Raises:
        BenchError: The command failed; the text quotes its message.
    """
    done = subprocess.run(
        argv, input=stdin, capture_output=True, text=True, check=False, pass_fds=reservation.locks()
    )
    if done.returncode != 0:
        raise BenchError(f"{' '.join(argv)}: {(done.stderr or done.stdout).strip()[-400:]}")
    return done.stdout


def host_address(spec: VirtualSpec) -> str:
    """Return the address of this machine on the control network: the highest of the subnet."""
    return str(ipaddress.IPv4Network(spec.control_subnet)[-2])


def create_namespace(name: str) -> None:
    """Create a namespace with loopback up and IPv6 off."""
    run("ip", "netns", "add", name)
    run("ip", "-n", name, "link", "set", "lo", "up")
    set_sysctls(name, {"net.ipv6.conf.all.disable_ipv6": "1", "net.ipv6.conf.default.disable_ipv6": "1"})


def set_sysctls(namespace: str, settings: Mapping[str, str]) -> None:
    """Set sysctls inside a namespace."""
    run(
        "ip",
        "netns",
        "exec",
        namespace,
        "sysctl",
        "-q",
        "-w",
        *[f"{key}={value}" for key, value in settings.items()],
    )


def delete_namespace(change: Mapping[str, Any]) -> None:
    """Undo action: end a namespace's processes, by their ids, and delete it; harmless when it is gone."""
    name = str(change["name"])
    if not Path("/run/netns", name).exists():
        return
    end_processes(name)
    run("ip", "netns", "delete", name)


def processes(name: str) -> list[int]:
    """Return the ids of the processes of a namespace; none where it is gone."""
    if not Path("/run/netns", name).exists():
        return []
    return [int(pid) for pid in run("ip", "netns", "pids", name).split()]


def end_processes(name: str) -> None:
    """End a namespace's processes, by their ids, without asking them.

    Raises:
        BenchError: They do not end.
    """
    deadline = time.monotonic() + 10.0
    while pids := processes(name):
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        if time.monotonic() > deadline:
            raise BenchError(f"processes {pids} of namespace {name} do not end")
        time.sleep(0.02)


def create_switch(namespace: str, spec: VirtualSpec) -> None:
    """Create the bridges, and this machine's address on the control network."""
    prefix = ipaddress.IPv4Network(spec.control_subnet).prefixlen
    lines = [f"link add {bridge} type bridge stp_state 0 mcast_snooping 0" for bridge in SWITCH_BRIDGES]
    lines += [f"link set {bridge} up" for bridge in SWITCH_BRIDGES]
    lines.append(f"address add {host_address(spec)}/{prefix} dev br-control")
    _batch(namespace, lines)


def create_producer_link(switch: str, namespace: str, port: str, address: str, spec: VirtualSpec) -> None:
    """Connect a producer's namespace to the test network by a link of the bench's rate.

    Args:
        switch: Namespace of the switch.
        namespace: Namespace of the producer; exists.
        port: Name of the switch's end.
        address: Address of the producer on the test network.
        spec: Subnets and rate.
    """
    create_link(switch, namespace, port, "br-test", "test0", address, spec.test_subnet, spec.mtu_bytes)
    limit_rate(namespace, "test0", spec)


def create_link(
    switch: str,
    namespace: str,
    port: str,
    bridge: str,
    interface: str,
    address: str,
    subnet: str,
    mtu_bytes: int = 1500,
) -> None:
    """Connect a namespace, where the link is called `interface`, to a bridge of the switch.

    The link's own hardware address is always the same for the same port: a machine's facts tell it.
    """
    prefix = ipaddress.IPv4Network(subnet).prefixlen
    mac = "52:55:" + ":".join(f"{byte:02x}" for byte in zlib.crc32(port.encode()).to_bytes(4, "big"))
    peer = f"{interface} mtu {mtu_bytes} address {mac} netns {namespace}"
    lines = [f"link add {port} mtu {mtu_bytes} type veth peer name {peer}"]
    _batch(switch, [*lines, f"link set {port} master {bridge} up"])
    _batch(namespace, [f"address add {address}/{prefix} dev {interface}", f"link set {interface} up"])


def create_tap(switch: str, name: str, bridge: str, mtu_bytes: int) -> None:
    """Create a tap for a guest's NIC and put it on a bridge."""
    _batch(
        switch,
        [
            f"tuntap add dev {name} mode tap vnet_hdr",
            f"link set {name} txqueuelen 10000 mtu {mtu_bytes}",
            f"link set {name} master {bridge} up",
        ],
    )


def limit_rate(namespace: str, interface: str, spec: VirtualSpec) -> None:
    """Limit what leaves an interface to the link's rate, behind a buffer of the switch's size.

    Packets marked for expedited forwarding (RFC 3246), and frames of RTDiP of high priority, leave before all
    others, as on a laboratory's switch that heeds the marks: a low-latency message of 10 bytes does not wait
    for 640 KB.
    """
    rate, buffer_bytes = f"{spec.rate_mbps}mbit", spec.switch_buffer_bytes
    # The shared class has the link's rate. Of it, expedited packets own a tenth; all others own next to
    # nothing and borrow what is left, after the expedited ones: strict priority.
    burst, ceiling = "burst 128k cburst 128k", f"ceil {rate}"
    own_expedited, own_other = f"rate {spec.rate_mbps * 100}kbit", f"rate {spec.rate_mbps}kbit"
    leaf = f"class add dev {interface} parent 1:1 classid"
    expedited = f"protocol ip u32 match ip dsfield {EXPEDITED_DSFIELD:#x} 0xfc flowid 1:10"
    lines = (
        f"qdisc replace dev {interface} root handle 1: htb default 20",
        f"class add dev {interface} parent 1: classid 1:1 htb rate {rate} {burst}",
        f"{leaf} 1:10 htb prio 0 quantum 1514 {own_expedited} {ceiling} {burst}",
        f"{leaf} 1:20 htb prio 1 quantum 65536 {own_other} {ceiling} {burst}",
        f"qdisc add dev {interface} parent 1:10 bfifo limit {buffer_bytes}",
        f"qdisc add dev {interface} parent 1:20 bfifo limit {buffer_bytes}",
        f"filter add dev {interface} parent 1: {expedited}",
        f"filter add dev {interface} parent 1: {RTDIP_HIGH} flowid 1:10",
    )
    _batch(namespace, lines, program="tc")


def move_port(switch: str, port: str, bridge: str) -> None:
    """Plug a port of the switch into another bridge."""
    _batch(switch, [f"link set {port} master {bridge}"])


def connect_machine(
    switch: str, namespace: str, name: str, addresses: tuple[str, str], spec: VirtualSpec
) -> None:
    """Connect the namespace of a machine to both networks of the bench.

    Args:
        switch: Namespace of the switch.
        namespace: The machine's; exists.
        name: The switch's ports are `t-NAME` and `c-NAME`.
        addresses: On the test network, and on the control network.
        spec: Subnets and rate.
    """
    test, control = addresses
    create_link(switch, namespace, f"t-{name}", "br-test", "test0", test, spec.test_subnet, spec.mtu_bytes)
    create_link(switch, namespace, f"c-{name}", "br-control", "control0", control, spec.control_subnet)
    limit_rate(namespace, "test0", spec)
    limit_rate(switch, f"t-{name}", spec)


def set_port(switch: str, port: str, *, up: bool) -> None:
    """Switch a port of the switch on or off, as if its plug was put in or pulled out."""
    _batch(switch, [f"link set {port} {'up' if up else 'down'}"])


def delete_port(switch: str, port: str) -> None:
    """Delete a port of the switch with its link; harmless when it is gone."""
    if port in run("ip", "-n", switch, "-brief", "link", "show").replace("@", " ").split():
        _batch(switch, [f"link delete {port}"])


def ports(switch: str, bridge: str) -> list[str]:
    """Return the names of the ports of a bridge."""
    out = run("ip", "-n", switch, "-brief", "link", "show", "master", bridge)
    return [line.split()[0].split("@")[0] for line in out.splitlines() if line.strip()]


def _batch(namespace: str, lines: Iterable[str], program: str = "ip") -> None:
    run(program, "-n", namespace, "-batch", "-", stdin="\n".join(lines) + "\n")
