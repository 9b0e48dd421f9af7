# SPDX-License-Identifier: Apache-2.0
"""Programs of the user-mode stack hear from its service how addresses are reached, and what changes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from tests.link import run_in
from tests.patience import wait_until
from tests.targets.userstack.stack import Family
from tests.targets.userstack.stackd_lab import (
    INTERFACE,
    NEIGHBOUR,
    OWN,
    PEER,
    Answer,
    Program,
    StackdLab,
    ip,
)
from tests.targets.userstack.stackd_packets import FAMILIES

ASKED_MAX = 256
"""Addresses of a program that the service knows, as port_service.h has it."""


@pytest.fixture
def program(driver_lab: StackdLab) -> Program:
    """A program, where neighbours that do not answer are given up at once."""
    limits = ("mcast_solicit", 1), ("ucast_solicit", 1), ("retrans_time_ms", 50)
    places = [f"net.{family}.neigh.{INTERFACE}" for family in ("ipv4", "ipv6")]
    keys = [f"{place}.{name}={value}" for place in places for name, value in limits]
    run_in(driver_lab.own, "sysctl", "-q", *keys)
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
        assert program.event(of(far)).result == "EACCES"
        ip(*rules, "delete", "to", far, "prohibit")
        assert program.event(of(far, reachable=True)).mac == lab.mac(lab.peer)


def test_a_way_that_is_barred_says_how(driver_lab: StackdLab, program: Program) -> None:
    """Once the bar is gone the neighbour is asked: of that the route said nothing."""
    lab = driver_lab
    for kind, said in (("unreachable", "EHOSTUNREACH"), ("prohibit", "EACCES"), ("blackhole", "EINVAL")):
        for family in FAMILIES:
            routes = ["-n", lab.own, f"-{family}", "route"]
            ip(*routes, "add", kind, PEER[family])
            assert program.resolve(PEER[family]).result == said
            # It alone: the service asks for any other one again as soon as it is gone.
            ip("-n", lab.own, "neighbour", "flush", "to", PEER[family], "dev", INTERFACE)
            ip(*routes, "delete", kind, PEER[family])
            assert program.event(of(PEER[family], reachable=True)).mac == lab.mac(lab.peer)


def test_a_neighbour_that_moves_is_told(driver_lab: StackdLab, program: Program, family: Family) -> None:
    lab = driver_lab
    program.resolve(PEER[family])
    program.event(of(PEER[family]))
    moved = "02:00:00:00:12:34"
    ip("-n", lab.peer, "link", "set", INTERFACE, "address", moved)
    ip("-n", lab.peer, "neighbour", "flush", "dev", INTERFACE)
    run_in(lab.peer, "ping", "-q", "-c", "1", OWN[family])
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
    ends: dict[int | str, set[str]] = {"ENOENT": set(), "EHOSTUNREACH": set()}
    forgotten = 1 + len(nobodies) - ASKED_MAX
    # Each has its event: that it is forgotten, no answer, or no answer first.
    while len(ends["ENOENT"]) < forgotten or set[str]().union(*ends.values()) < set(nobodies):
        event = program.event(lambda event: event.ip in nobodies)
        ends[event.result].add(event.ip)
    assert len(ends["ENOENT"]) == forgotten
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
