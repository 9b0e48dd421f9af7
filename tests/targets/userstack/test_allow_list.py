# SPDX-License-Identifier: Apache-2.0
"""The list of `bw-accel --only`: its grammar, and which sockets it has, by the measure of ipaddress."""

from __future__ import annotations

import ctypes
import errno
import random
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path

import pytest

TCP, UDP = 6, 17
ENTRIES_MAX = 64
MAPPED = IPv6Network("::ffff:0:0/96")
Network = IPv4Network | IPv6Network


class Entry(ctypes.Structure):
    """As struct allow_entry."""

    _fields_ = [
        ("protocol", ctypes.c_int),
        ("first_port", ctypes.c_uint16),
        ("last_port", ctypes.c_uint16),
        ("ipv6", ctypes.c_bool),
        ("ip", ctypes.c_uint8 * 16),
        ("prefix_bits", ctypes.c_int),
    ]


class List(ctypes.Structure):
    """As struct allow_list."""

    _fields_ = [("count", ctypes.c_int), ("entries", Entry * ENTRIES_MAX)]


class Lists:
    """The functions of allow_list.h."""

    def __init__(self, library: Path) -> None:
        """Load them."""
        self._library = ctypes.CDLL(str(library))
        self._library.allow_list_has.restype = ctypes.c_bool
        self._library.allow_list_has.argtypes = [
            ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_bool, ctypes.c_uint16, ctypes.c_uint16,
        ]  # fmt: skip

    def parse(self, text: str) -> List:
        """Read a list that is right."""
        made, wrong = List(), ctypes.c_char_p()
        raw = ctypes.c_char_p(text.encode())
        assert self._library.allow_list_parse(raw, ctypes.byref(made), ctypes.byref(wrong)) == 0, text
        assert wrong.value is None
        return made

    def refused(self, text: str) -> tuple[int, str]:
        """Read a list that is wrong; return the error's number, and the entry that is."""
        made, wrong = List(count=7), ctypes.c_char_p()
        raw = ctypes.c_char_p(text.encode())
        error = self._library.allow_list_parse(raw, ctypes.byref(made), ctypes.byref(wrong))
        assert error < 0, text
        assert made.count == 0
        assert wrong.value is not None
        return -error, wrong.value.decode().split(",")[0]

    def has(self, made: List, protocol: int, peer: str | None, local_port: int, peer_port: int) -> bool:
        """Ask for a socket; peer: its other end's address."""
        address = None if peer is None else ip_address(peer)
        packed = None if address is None else address.packed
        is_ipv6 = address is not None and address.version == 6
        return bool(
            self._library.allow_list_has(ctypes.byref(made), protocol, packed, is_ipv6, local_port, peer_port)
        )


@pytest.fixture(scope="module")
def lists() -> Lists:
    root = Path(__file__).resolve().parents[3]
    return Lists(root / ".build" / "linux" / "tests/targets/userstack/userstack-allow-list.so")


def test_the_empty_list_has_every_socket(lists: Lists) -> None:
    empty = lists.parse("")
    assert empty.count == 0
    assert lists.has(empty, TCP, None, 0, 0)
    assert lists.has(empty, UDP, "fd00::1", 1, 65535)


@pytest.mark.parametrize(
    ("text", "taken", "left"),
    [
        (
            "7000",
            [(TCP, None, 7000, 0), (UDP, "10.0.0.1", 1, 7000)],
            [(TCP, None, 7001, 6999), (TCP, None, 0, 0)],
        ),
        ("tcp:7000", [(TCP, None, 7000, 0)], [(UDP, None, 7000, 7000)]),
        (
            "udp:5000-5100",
            [(UDP, None, 5000, 0), (UDP, None, 0, 5100)],
            [(UDP, None, 4999, 5101), (TCP, None, 5050, 0)],
        ),
        ("1-65535", [(TCP, None, 1, 0), (TCP, None, 65535, 0)], [(TCP, "10.0.0.1", 0, 0)]),
        (
            "10.77.0.0/24",
            [(TCP, "10.77.0.255", 1, 2), (UDP, "::ffff:10.77.0.1", 1, 2)],
            [(TCP, "10.77.1.0", 1, 2), (TCP, None, 1, 2), (TCP, "fd00::a4d:1", 1, 2)],
        ),
        ("10.77.0.9/24", [(TCP, "10.77.0.1", 1, 2)], [(TCP, "10.76.0.9", 1, 2)]),
        ("10.77.0.9", [(TCP, "10.77.0.9", 1, 2)], [(TCP, "10.77.0.8", 1, 2)]),
        ("0.0.0.0/0", [(TCP, "255.1.2.3", 1, 2)], [(TCP, "fd00::1", 1, 2), (TCP, None, 1, 2)]),
        (
            "udp:fd00::/64",
            [(UDP, "fd00::ffff:0:0:1", 1, 2)],
            [(UDP, "fd00:0:0:1::", 1, 2), (TCP, "fd00::1", 1, 2)],
        ),
        ("::/0", [(TCP, "fd00::1", 1, 2)], [(TCP, "::ffff:10.77.0.1", 1, 2), (TCP, "10.77.0.1", 1, 2)]),
        (
            "::ffff:10.77.0.0/120",
            [(TCP, "10.77.0.3", 1, 2), (TCP, "::ffff:10.77.0.3", 1, 2)],
            [(TCP, "10.77.1.3", 1, 2)],
        ),
        ("udp:9,tcp:fd00::1", [(UDP, None, 9, 0), (TCP, "fd00::1", 8, 8)], [(TCP, "fd00::2", 9, 9)]),
    ],
)
def test_one_entry_is_enough_for_a_socket(
    lists: Lists,
    text: str,
    taken: list[tuple[int, str | None, int, int]],
    left: list[tuple[int, str | None, int, int]],
) -> None:
    made = lists.parse(text)
    assert [each for each in taken if not lists.has(made, *each)] == []
    assert [each for each in left if lists.has(made, *each)] == []


@pytest.mark.parametrize(
    ("text", "error", "entry"),
    [
        (",", errno.EINVAL, ""),
        ("80,", errno.EINVAL, ""),
        ("80,,90", errno.EINVAL, ""),
        (" 80", errno.EINVAL, " 80"),
        ("80, 90", errno.EINVAL, " 90"),
        ("tcp:", errno.EINVAL, "tcp:"),
        ("TCP:80", errno.EINVAL, "TCP:80"),
        ("sctp:80", errno.EINVAL, "sctp:80"),
        ("http", errno.EINVAL, "http"),
        ("080", errno.EINVAL, "080"),
        ("+80", errno.EINVAL, "+80"),
        ("-80", errno.EINVAL, "-80"),
        ("80-", errno.EINVAL, "80-"),
        ("80-90-100", errno.EINVAL, "80-90-100"),
        ("80/8", errno.EINVAL, "80/8"),
        ("0", errno.ERANGE, "0"),
        ("65536", errno.ERANGE, "65536"),
        ("99999999999999999999", errno.ERANGE, "99999999999999999999"),
        ("5100-5000", errno.ERANGE, "5100-5000"),
        ("1-65536", errno.ERANGE, "1-65536"),
        ("65536-x", errno.EINVAL, "65536-x"),
        ("7,10.77.0.0/33", errno.ERANGE, "10.77.0.0/33"),
        ("fd00::/129", errno.ERANGE, "fd00::/129"),
        ("10.77.0.0/", errno.EINVAL, "10.77.0.0/"),
        ("10.77.0.0/-1", errno.EINVAL, "10.77.0.0/-1"),
        ("10.77.0/24", errno.EINVAL, "10.77.0/24"),
        ("10.77.0.256", errno.EINVAL, "10.77.0.256"),
        ("10.77.0.0:80", errno.EINVAL, "10.77.0.0:80"),
        ("[fd00::1]:80", errno.EINVAL, "[fd00::1]:80"),
        ("fd00::1%eth0", errno.EINVAL, "fd00::1%eth0"),
    ],
)
def test_what_is_no_entry_is_named(lists: Lists, text: str, error: int, entry: str) -> None:
    assert lists.refused(text) == (error, entry)


def test_a_list_has_64_entries_at_most(lists: Lists) -> None:
    ports = [str(number) for number in range(1, ENTRIES_MAX + 2)]
    assert lists.parse(",".join(ports[:ENTRIES_MAX])).count == ENTRIES_MAX
    assert lists.refused(",".join(ports)) == (errno.E2BIG, "65")


def _written(address: IPv6Address, rng: random.Random) -> str:
    """Write an address in one of the forms of RFC 4291, section 2.2."""
    form = rng.choice(("compressed", "exploded", "quad"))
    if form != "quad":
        return str(getattr(address, form))
    groups = address.exploded.split(":")[:6]
    return ":".join([*groups, str(IPv4Address(int(address) & 0xFFFFFFFF))])


def _expected(network: Network, address: IPv4Address | IPv6Address) -> bool:
    if isinstance(network, IPv6Network) and network.subnet_of(MAPPED):
        network = IPv4Network((int(network.network_address) & 0xFFFFFFFF, network.prefixlen - 96))
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.version == network.version and address in network


def test_any_prefix_has_the_addresses_that_it_has(lists: Lists) -> None:
    """Of each an address that differs in one bit, of both families and of IPv4 within IPv6."""
    rng = random.Random(3)
    found = set[bool]()
    for _ in range(3000):
        address: IPv4Address | IPv6Address = IPv4Address(rng.getrandbits(32))
        kind = rng.choice((4, 6, "mapped"))
        if kind == 6:
            address = IPv6Address(rng.getrandbits(128) & rng.getrandbits(128))  # with zeros to leave out
        elif kind == "mapped":
            address = IPv6Address(int(MAPPED.network_address) + int(address))
        length = rng.randint(MAPPED.prefixlen if kind == "mapped" else 0, address.max_prefixlen)
        other = type(address)(int(address) ^ 1 << rng.randrange(address.max_prefixlen))
        text = str(address) if isinstance(address, IPv4Address) else _written(address, rng)
        made = lists.parse(f"{text}/{length}")
        expected = _expected(ip_network(f"{address}/{length}", strict=False), other)
        assert lists.has(made, TCP, str(other), 1, 2) == expected, f"{text}/{length} {other}"
        assert lists.has(made, TCP, str(address), 1, 2), f"{text}/{length}"
        found.add(expected)
    assert found == {True, False}


def test_texts_are_addresses_where_they_are_for_others(lists: Lists) -> None:
    """Groups, quads and colons in any order: taken or refused as by ipaddress."""
    rng = random.Random(4)
    taken = 0
    for _ in range(20_000):
        parts = [rng.choice(("0", "ffff", "1.2.3.4", "fd00", "12345", "")) for _ in range(rng.randint(1, 9))]
        text = (
            ":".join(parts) if rng.random() < 0.7 else "::".join([":".join(parts[:2]), ":".join(parts[2:])])
        )
        if ":" not in text or text[:4] in ("tcp:", "udp:"):
            continue
        try:
            ip_address(text)
        except ValueError:
            assert lists.refused(text) == (errno.EINVAL, text)
        else:
            assert lists.has(lists.parse(text), UDP, text, 0, 0), text
            taken += 1
    assert taken > 100
