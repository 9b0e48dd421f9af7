# SPDX-License-Identifier: Apache-2.0
"""Namespaces, taps, impairment and timestamping network cards of this machine."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

from hw.capability import Capability, State
from hw.probes import privileges

# include/uapi/linux/ethtool.h, sockios.h, net_tstamp.h
_SIOCETHTOOL = 0x8946
_ETHTOOL_GET_TS_INFO = 0x00000041
_TS_INFO = struct.Struct("=IIiI3II3I")
_TX_HARDWARE, _RX_HARDWARE, _RAW_HARDWARE = 1 << 0, 1 << 2, 1 << 6
_TX_SOFTWARE = 1 << 1
_FILTER_ALL = 1 << 1
_NAMESPACE_NEEDS = ("CAP_SYS_ADMIN", "CAP_NET_ADMIN")
_ROOT_NEEDS = (*_NAMESPACE_NEEDS, "CAP_SYS_NICE")
_TUNSETIFF_DEVICE = Path("/dev/net/tun")


def root() -> Capability:
    """Say whether this process is root."""
    return judge_root(os.geteuid(), privileges.lacking(*_ROOT_NEEDS))


def judge_root(effective_user: int, lacks: tuple[str, ...] = ()) -> Capability:
    """Judge an effective user id, and what root lacks of its capabilities."""
    if effective_user == 0 and lacks:
        found = f"root without {', '.join(lacks)}"
        return Capability(
            "root", State.MISSING, found, privileges.remedy(privileges.NOT_PERMITTED, lacks, "")
        )
    if effective_user == 0:
        return Capability("root", State.OK, "root")
    return Capability(
        "root",
        State.MISSING,
        f"user {effective_user}: no namespaces, taps or real-time priorities",
        "run as root",
    )


def namespaces() -> Capability:
    """Make a network namespace, in a process of its own, with a veth pair in it."""
    outcome = _in_new_namespace("ip link add bwd0 type veth peer name bwd1")
    return judge_namespaces(outcome, privileges.lacking(*_NAMESPACE_NEEDS))


def judge_namespaces(refusal: str, lacks: tuple[str, ...] = ()) -> Capability:
    """Judge the answer to a request for a network namespace with a veth pair, and what this process lacks."""
    if not refusal:
        return Capability("namespaces", State.OK, "network namespaces and veth pairs")
    return Capability(
        "namespaces",
        State.MISSING,
        privileges.cause(refusal, lacks),
        privileges.remedy(refusal, lacks, "run a kernel with CONFIG_NET_NS and CONFIG_VETH"),
    )


def tap() -> Capability:
    """Open the tap device."""
    try:
        os.close(os.open(_TUNSETIFF_DEVICE, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return judge_tap(error.strerror or str(error))
    # Anybody may open it; to make a tap takes more.
    lacks = privileges.lacking("CAP_NET_ADMIN")
    return judge_tap(privileges.NOT_PERMITTED if lacks else "", lacks)


def judge_tap(refusal: str, lacks: tuple[str, ...] = ()) -> Capability:
    """Judge the answer to opening /dev/net/tun, and what this process lacks."""
    if not refusal:
        return Capability("tun", State.OK, str(_TUNSETIFF_DEVICE))
    return Capability(
        "tun",
        State.MISSING,
        f"{_TUNSETIFF_DEVICE}: {privileges.cause(refusal, lacks)}",
        privileges.remedy(refusal, lacks, "run as root; modprobe tun (in a container: pass the device)"),
    )


def impairment() -> Capability:
    """Put netem and tbf on an interface of a new namespace."""
    return judge_impairment(
        _in_new_namespace("tc qdisc add dev lo root netem limit 10 delay 1ms"),
        _in_new_namespace("tc qdisc add dev lo root tbf rate 1gbit burst 64kb limit 1mb"),
        privileges.lacking(*_NAMESPACE_NEEDS),
    )


def judge_impairment(netem_refusal: str, rate_refusal: str, lacks: tuple[str, ...] = ()) -> Capability:
    """Judge the answers to requests for netem and for a rate limit, and what this process lacks."""
    if rate_refusal:
        return Capability(
            "qdisc",
            State.MISSING,
            f"no rate limit on links: {privileges.cause(rate_refusal, lacks)}",
            privileges.remedy(rate_refusal, lacks, "run a kernel with CONFIG_NET_SCH_TBF (modprobe sch_tbf)"),
        )
    if netem_refusal:
        return Capability(
            "qdisc", State.OK, "rate limits here; netem only in the impairment guest (kernel without it)"
        )
    return Capability("qdisc", State.OK, "rate limits and netem")


def _in_new_namespace(command: str) -> str:
    """Run a command in a network namespace that ends with it; return why it failed, or nothing."""
    try:
        done = subprocess.run(
            ["unshare", "--net", *command.split()],
            env={**os.environ, "LC_ALL": "C"},
            capture_output=True,
            text=True,
            timeout=10,
        )
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    except subprocess.TimeoutExpired:
        return f"no answer to `{command}` within 10 s"
    if done.returncode == 0:
        return ""
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else f"`{command}` ended with {done.returncode}"


@dataclass(frozen=True)
class TimestampInfo:
    """What a network card stamps.

    Attributes:
        hardware: Stamps of sent and received frames by the card's own clock.
        software_transmit: Stamps of sent frames by the driver.
        all_frames: The card can stamp every received frame, not those of PTP alone.
        phc: Index of its PTP hardware clock, -1 without one.
    """

    hardware: bool
    software_transmit: bool
    all_frames: bool
    phc: int


def decode_timestamp_info(answer: bytes) -> TimestampInfo:
    """Decode a struct ethtool_ts_info (44 bytes)."""
    _command, flags, phc, _tx_types, _r0, _r1, _r2, filters, *_ = _TS_INFO.unpack(answer)
    hardware = _TX_HARDWARE | _RX_HARDWARE | _RAW_HARDWARE
    return TimestampInfo(
        flags & hardware == hardware, bool(flags & _TX_SOFTWARE), bool(filters & _FILTER_ALL), phc
    )


def read_timestamp_info(interface: str) -> TimestampInfo:
    """Ask a network card for its timestamping (ETHTOOL_GET_TS_INFO).

    Raises:
        OSError: No such interface, or the driver does not answer.
    """
    info = ctypes.create_string_buffer(_TS_INFO.pack(_ETHTOOL_GET_TS_INFO, *[0] * 10), _TS_INFO.size)
    request = struct.pack("16sP", interface.encode(), ctypes.addressof(info)).ljust(40, b"\0")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCETHTOOL, request)
    return decode_timestamp_info(info.raw)


def timestamping() -> Capability:
    """List what the physical network cards stamp."""
    found: dict[str, TimestampInfo | str] = {}
    for interface in sorted(Path("/sys/class/net").iterdir()):
        if not (interface / "device").exists():
            continue
        try:
            found[interface.name] = read_timestamp_info(interface.name)
        except OSError as error:
            found[interface.name] = error.strerror or str(error)
    return judge_timestamping(found)


def judge_timestamping(found: dict[str, TimestampInfo | str]) -> Capability:
    """Judge the cards by interface name: what they stamp, or why they did not say."""
    words: list[str] = []
    for interface, info in found.items():
        if isinstance(info, str):
            words.append(f"{interface}: {info}")
        elif info.hardware:
            frames = "all frames" if info.all_frames else "PTP frames only"
            words.append(f"{interface}: hardware stamps of {frames}, clock /dev/ptp{info.phc}")
        else:
            words.append(
                f"{interface}: software stamps" + ("" if info.software_transmit else " of received frames")
            )
    if any(isinstance(info, TimestampInfo) and info.hardware for info in found.values()):
        return Capability("nic-stamps", State.OK, "; ".join(words))
    return Capability(
        "nic-stamps",
        State.MISSING,
        "; ".join(words) or "no physical network card",
        "put in a card whose driver stamps in hardware (see `ethtool -T`): Intel i210, i225, E810",
    )
