# SPDX-License-Identifier: Apache-2.0
"""A replay by a network stack: what it carries, what its programs are told, what its ends have gained."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hw.errors import BenchError, CapabilityError
from reports.daq_replay.evidence import load_replay
from reports.daq_replay.stack_proof import STACK_PROOF, StackEnd, StackProof
from resources import network_stack
from resources.daq_replay.evidence import LatencyEvidence, ReplayAttempt
from resources.daq_replay.largest_pattern import LargestPatternSearch
from resources.daq_replay.pattern import Pattern, load_pattern
from resources.daq_replay.plan import ReplaySettings
from resources.daq_replay.replay import Replay
from resources.daq_replay.requirements import load_requirements
from resources.network_stack import NetworkStack, Proof
from resources.profiles import load_profile
from tests.fake_bench import FakeBench
from tests.reports.sample_run import Disturbance, write_evidence
from tests.resources.network_stack.machine import DAQ12, NETSTAT, ROOT, SPEC, Machine


def _silent(_line: str) -> None:
    """Progress that nobody watches."""


def test_a_replay_keeps_what_the_ends_have_gained_in_bytes(user: NetworkStack, tmp_path: Path) -> None:
    """And brings programs and libraries before it counts: that is traffic of the kernel's."""
    said = {"linux-rt": 900, "p01": 70}

    def answer(node: str, argv: Sequence[str]) -> tuple[int, str, str]:
        bench.log.append(f"{node} {argv[0]}")
        shown = json.dumps({"frames": {"bytes_in": said[node]}})
        return 0, shown if argv == [f"/{node}/asked"] else NETSTAT, ""

    bench: Any = FakeBench(SPEC, answer=answer)
    settings = ReplaySettings(DAQ12, "aligned-12")
    replay = Replay(bench, SPEC.targets["linux-rt"], cast("Any", None), settings, tmp_path, _silent)
    both = replace(
        user, endpoints="both", proof=Proof("asked", (), "frames.bytes_in", None), preload=("libuser.so",)
    )
    replay.stack = ("linux-rt", both)
    counted = replay._count(["p01"])  # pyright: ignore[reportPrivateUsage]
    brought = [f"{name} {file}" for name in said for file in ("libuser.so", "bw-traffic")]
    assert bench.log[:4] == brought
    assert "linux-rt /linux-rt/asked" in bench.log[4:]
    said = {"linux-rt": 5900, "p01": 71}
    replay._keep_proof(counted, ["p01"])  # pyright: ignore[reportPrivateUsage]
    gained = {"linux-rt": StackEnd(None, 0, 0, 5000), "p01": StackEnd(None, 0, 0, 1)}
    assert StackProof.read(tmp_path / STACK_PROOF) == StackProof("user", None, "linux-rt", gained)
    assert "frame_bytes" not in (tmp_path / STACK_PROOF).read_text()


def test_what_it_does_not_carry_is_left_out_of_the_pattern(user: NetworkStack) -> None:
    pattern = load_pattern(DAQ12)
    carried = user.carried(pattern)
    assert {stream.transport for stream in pattern.streams} == {"tcp", "udp"}
    assert {stream.transport for stream in carried.streams} == {"tcp"}
    assert max(stream.size_bytes for stream in carried.streams) <= 50_000
    left_out = {stream.id for stream in pattern.streams} - {stream.id for stream in carried.streams}
    of_eleven = user.carried(pattern, 11)
    assert {s.id for s in pattern.streams} - {s.id for s in of_eleven.streams} == {
        stream for stream in left_out if stream // 10 == 11
    }
    with pytest.raises(CapabilityError, match=f"pattern {pattern.name}: network stack user carries udp, not"):
        replace(user, transports=("udp",), message_max_bytes=1).carried(pattern)


def _evidence(folder: Path) -> LatencyEvidence:
    bench = cast("Any", SimpleNamespace(spec=SPEC))
    requirements = load_requirements(ROOT / "robot" / "daq_replay" / "requirements" / "daq12.toml")
    target = SPEC.targets["linux-rt"]
    return LatencyEvidence(bench, target, "user", "two-way", load_profile("ci"), requirements, folder)


def test_streams_that_it_does_not_carry_are_not_tested(
    targets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have no verdict and a reason; the others are judged; the largest pattern is one without them."""
    evidence = _evidence(tmp_path)
    replayed: list[Pattern] = []

    def attempt(pattern: Pattern, *_: object) -> None:
        replayed.append(pattern)
        write_evidence(tmp_path, Disturbance(), seed=0)
        evidence.attempts.append(ReplayAttempt(tmp_path, load_replay(tmp_path).replay()))

    monkeypatch.setattr(evidence, "_attempt", attempt)
    pattern = load_pattern(DAQ12)
    evidence.replay(pattern, ReplaySettings(DAQ12, "aligned-12"), _silent)
    [sent] = replayed
    left_out = {stream.id for stream in pattern.streams} - {stream.id for stream in sent.streams}
    assert set(evidence.not_carried) == left_out
    assert set(evidence.decided()) == {stream.id for stream in sent.streams}
    with pytest.raises(CapabilityError, match="network stack user carries tcp, not udp"):
        evidence.records(
            next(s.id for s in pattern.streams if s.transport == "udp"), cast("Any", None), "test"
        )
    search = LargestPatternSearch(
        evidence,
        pattern,
        ReplaySettings(DAQ12, "aligned-12"),
        evidence.requirements,
        cast("Any", None),
        _silent,
    )
    judged = set(search._requirements(pattern.producers, True))  # pyright: ignore[reportPrivateUsage]
    assert judged == {stream.id for stream in sent.streams}


def test_programs_on_the_target_alone_use_it(user: NetworkStack, machine: Machine, tmp_path: Path) -> None:
    """A receiver on the target, or a sender where the target produces; no other command line changes."""
    other = Machine(machine.root, "p01")
    bench: Any = FakeBench(SPEC)
    bench.nodes |= {"linux-rt": machine, "p01": other}
    settings = ReplaySettings(DAQ12, "aligned-12")
    replay = Replay(bench, SPEC.targets["linux-rt"], cast("Any", None), settings, tmp_path, _silent)
    recv, send = replay._start_recv, replay._start_send  # pyright: ignore[reportPrivateUsage]
    recv(tmp_path / "plan.toml")
    started = machine.started.pop()
    assert started[:2] == ["/linux-rt/bw-traffic", "recv"]
    assert "--witness" not in started
    recv(tmp_path / "plan.toml", is_emulated=True)
    assert machine.started.pop()[-2:] == [
        "--witness",
        f"{started[started.index('--out') + 1]}/witness-target.ndjson",
    ]
    replay.stack = ("linux-rt", user)
    recv(tmp_path / "plan.toml")
    send("p01", [1], tmp_path / "plan.toml")
    [received], [sent] = machine.started, other.started
    assert received[:4] == ["env", "USER_STACK=test0", "/linux-rt/bw-traffic", "recv"]
    assert received[-2:] == ["--poll", "8"]
    assert not bench.log
    assert sent[:2] == ["/p01/bw-traffic", "send"]
    assert "--poll" not in sent
    replay.stack = ("linux-rt", replace(user, launcher=("$folder/start", "--fast")))
    recv(tmp_path / "plan.toml")
    assert machine.started.pop()[2:6] == ["/stack/start", "--fast", "/linux-rt/bw-traffic", "recv"]
    assert sum("bw-traffic" in each for each in bench.log) == 0
    replay.stack = ("linux-rt", replace(user, preload=("libuser.so", "/opt/libvendor.so")))
    with pytest.raises(BenchError, match=r"linux-rt: bw-traffic cannot .* /linux-rt/libuser\.so loaded"):
        recv(tmp_path / "plan.toml")
    assert [each for each in bench.log if "bw-traffic" in each] == ["linux-rt bw-traffic"], (
        "the dynamic build; and here is neither it nor a library"
    )
    assert machine.started == [received]


ADDRESSES = """\
1: lo    inet 127.0.0.1/8 scope host lo
4: ctl0    inet 10.0.0.11/24 scope global ctl0
7: p01-test@if6    inet {address}/24 brd + scope global p01-test
"""


def test_programs_on_all_ends_use_one_with_the_words_of_their_node(
    user: NetworkStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sender and receiver alike: libraries, environment, arguments, each its own folder and interface."""
    started: dict[str, tuple[Any, ...]] = {}

    def start_program(node: Any, argv: list[str], _stem: Path, *loaded: Any) -> None:
        started[node.name] = (argv, *loaded)

    monkeypatch.setattr(network_stack, "start_program", start_program)
    shown = ADDRESSES.format(address=SPEC.producers[1].address)

    def answer(node: str, argv: Sequence[str]) -> tuple[int, str, str]:
        assert (node, argv[0]) == ("p01", "ip"), "the bench file says the target's"
        return 0, shown, ""

    bench: Any = FakeBench(SPEC, answer=answer)
    settings = ReplaySettings(DAQ12, "aligned-12")
    replay = Replay(bench, SPEC.targets["linux-rt"], cast("Any", None), settings, tmp_path, _silent)
    both = replace(
        user,
        endpoints="both",
        install=None,
        arguments=("--at", "$folder/$interface"),
        environment={
            "USER_SOCKET": "$folder/user.sock",
            "USER_INTERFACE": "$interface",
            "USER_SPIN_US": "50",
        },
        preload=("libuser.so",),
    )
    replay.stack = ("linux-rt", both)
    replay._start_recv(tmp_path / "plan.toml")  # pyright: ignore[reportPrivateUsage]
    replay._start_send("p01", [1], tmp_path / "plan.toml")  # pyright: ignore[reportPrivateUsage]
    assert set(started) == {"linux-rt", "p01"}
    for (name, (argv, environment, libraries)), interface in zip(
        started.items(), (SPEC.targets["linux-rt"].test_interface, "p01-test"), strict=True
    ):
        folder = f"/run/benchwright/stack/{name}"
        assert argv[0] == f"/{name}/dynamic/bw-traffic"
        assert argv[-2:] == ["--at", f"{folder}/{interface}"]
        assert environment == {
            "USER_SOCKET": f"{folder}/user.sock", "USER_INTERFACE": interface, "USER_SPIN_US": "50",
        }  # fmt: skip
        assert libraries == [f"/{name}/libuser.so"]
    shown = ADDRESSES.format(address="192.0.2.77")
    with pytest.raises(BenchError, match=rf"p01: no interface has {SPEC.producers[1].address}"):
        replay._start_send("p01", [1], tmp_path / "plan.toml")  # pyright: ignore[reportPrivateUsage]
