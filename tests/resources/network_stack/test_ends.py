# SPDX-License-Identifier: Apache-2.0
"""A network stack on a machine: put on, given back whatever happens, and what its ends count."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hw.errors import BenchError, CapabilityError
from reports.daq_replay.stack_proof import StackEnd
from resources.network_stack import NetworkStack, load_network_stack
from resources.network_stack_ends import FOUND, counters, frame_bytes, network_stack_on
from tests.fake_bench import FakeBench
from tests.resources.network_stack.machine import (
    IN_BYTES,
    NETSTAT,
    PROOF,
    PROOF_TOOL,
    TARGETS,
    Machine,
    stack_on,
)


@pytest.mark.parametrize(
    ("proof", "room_bytes", "counted"),
    [
        (f"{PROOF}frame_bytes = 700\n", 700, StackEnd(3, 50, 60)),
        (f'{PROOF}frame_bytes_field = "room.bytes"\n', 4000, StackEnd(3, 50, 60)),
        (f"{PROOF_TOOL}{IN_BYTES}", None, StackEnd(None, 50, 60, 900)),
    ],
)
def test_an_end_counts_frames_of_some_room_or_bytes(
    targets: Path, proof: str, room_bytes: int | None, counted: StackEnd
) -> None:
    """The room is a number of the file, or what the stack says."""
    path = targets / "linux-rt" / "stack" / "user.toml"
    path.write_text(f"{path.read_text()}{proof}")
    said = '{"room": {"bytes": 4000}, "frames": {"delivered": 3, "bytes_in": 900}}'

    def answer(node: str, argv: Sequence[str]) -> tuple[int, str, str]:
        assert node == "linux-rt"
        return 0, said if argv == ["/linux-rt/asked"] else NETSTAT, ""

    bench: Any = FakeBench(answer=answer)
    stack = load_network_stack(targets / "linux-rt", "user")
    assert frame_bytes(stack, bench, "linux-rt") == room_bytes
    assert counters(stack, bench, "linux-rt") == counted


def test_a_stack_is_put_on_and_given_back(user: NetworkStack, machine: Machine, tmp_path: Path) -> None:
    with stack_on(user, machine, "test0", tmp_path / "evidence"):
        assert machine.link == "busy-polling"
    assert machine.link == "as found"
    assert json.loads((tmp_path / "evidence" / FOUND).read_text())["stack"] == "user"


def test_what_a_killed_run_has_left_is_given_back_first(
    user: NetworkStack, machine: Machine, tmp_path: Path
) -> None:
    context = stack_on(user, machine, "test0", tmp_path)
    context.__enter__()  # and nothing ends it
    with stack_on(user, machine, "test0", tmp_path):
        assert (machine.root / "stack" / "undo").read_text() == "as found\n"
    assert machine.link == "as found"
    context.gen.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("error", [BenchError("it lost its power"), KeyboardInterrupt()])
def test_an_error_meanwhile_leaves_nothing(
    user: NetworkStack, machine: Machine, tmp_path: Path, error: BaseException
) -> None:
    with pytest.raises(type(error)), stack_on(user, machine, "test0", tmp_path):
        raise error
    assert machine.link == "as found"


def test_a_machine_that_cannot_have_it_says_why(user: NetworkStack, machine: Machine, tmp_path: Path) -> None:
    with (
        pytest.raises(CapabilityError, match="network stack user: linux-rt: no queue on test9"),
        stack_on(user, machine, "test9", tmp_path),
    ):
        pass
    (machine.root / "stack" / "broken").touch()
    with (
        pytest.raises(BenchError, match="`apply`: exit code 1: it broke"),
        stack_on(user, machine, "test0", tmp_path),
    ):
        pass
    assert machine.link == "as found"


def test_the_kernels_stack_says_what_it_goes_through(machine: Machine, tmp_path: Path) -> None:
    """On this machine's own loopback interface, for real."""
    stack = load_network_stack(TARGETS / "linux-rt", "kernel")
    with stack_on(stack, machine, "lo", tmp_path):
        pass
    found = json.loads((tmp_path / FOUND).read_text())
    assert (found["stack"], found["interface"], found["qdisc"]) == ("kernel", "lo", "noqueue")
    with (
        pytest.raises(CapabilityError, match="network stack kernel: linux-rt: there is no interface test77"),
        stack_on(stack, machine, "test77", tmp_path),
    ):
        pass


def test_its_command_is_told_folder_and_interface(
    user: NetworkStack, machine: Machine, tmp_path: Path
) -> None:
    assert user.install is not None
    script = ("sh", "-c", 'echo "$0" "$@"', "$folder", "$interface")
    told = replace(user, install=replace(user.install, command=script))
    with stack_on(told, machine, "test0", tmp_path):
        pass
    said = (tmp_path / FOUND).read_text().split()
    assert said == [str(machine.root / "stack"), "test0", "--interface", "test0", "apply"]


@pytest.mark.parametrize("died", [None, 139])
def test_a_service_that_died_is_named_with_its_log(tmp_path: Path, died: int | None) -> None:
    """What its programs say of it, `Connection refused`, is no reason."""
    bench: Any = FakeBench(exit_code=None)
    refused = BenchError("stream 10: no connection to 10.77.0.100:20010 before slot 0: Connection refused")
    stack = load_network_stack(TARGETS / "linux", "user")

    def use() -> None:
        with network_stack_on(stack, bench, "linux-rt", {"linux-rt": "test0"}, tmp_path):
            bench.jobs[0].exit_code = died
            raise refused

    with pytest.raises(BenchError) as told:
        use()
    assert "stop linux-rt-bw-stackd" in bench.log
    if died is None:
        assert told.value is refused
        return
    for words in ("service bw-stackd died", "exit code 139", "linux-rt-bw-stackd.err", "run again"):
        assert words in str(told.value)
    assert told.value.__context__ is refused
    assert "fetch linux-rt-bw-stackd" in bench.log


@pytest.mark.parametrize(("code", "fault"), [(3, CapabilityError), (1, BenchError)])
def test_a_service_that_is_never_ready_has_not_died(
    tmp_path: Path, code: int, fault: type[Exception]
) -> None:
    """Exit code 3: the machine cannot have the stack."""
    bench: Any = FakeBench(exit_code=code, broken="p02-bw-stackd")
    stack = load_network_stack(TARGETS / "linux", "user")
    put_on = network_stack_on(stack, bench, "linux", {"p02": "test0"}, tmp_path)
    with pytest.raises(fault, match="p02-bw-stackd: not ready") as error, put_on:
        pytest.fail("it was put on")
    assert type(error.value) is fault
    assert "stop p02-bw-stackd" in bench.log
