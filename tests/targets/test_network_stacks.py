# SPDX-License-Identifier: Apache-2.0
"""RTDiP and the user-mode stack at both ends of a replay on the native machine: what carried it is proved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hw.errors import CapabilityError
from hw.provisioning import TARGETS, Provisioner
from hw.session import Bench
from reports.daq_replay.stack_proof import STACK_PROOF, StackProof, why_not_carried
from reports.tools.answers import recv_result
from resources.daq_replay.pattern import load_pattern
from resources.daq_replay.plan import ReplaySettings
from resources.daq_replay.replay import Replay, ReplayAnswers
from resources.network_stack import NetworkStack, load_network_stack
from resources.network_stack_ends import counters, network_stack_on, stack_interfaces
from tests.hw.test_hardware_bench import PATTERN

MACHINE = "linux"
pytestmark = pytest.mark.simulated


@pytest.fixture
def stack() -> NetworkStack:
    return load_network_stack(TARGETS / MACHINE, "rtdip")


def ends_of(bench: Bench, stack: NetworkStack) -> dict[str, str]:
    interface = bench.spec.targets[MACHINE].test_interface
    return stack_interfaces(bench.spec, stack, MACHINE, MACHINE, interface)


def replayed(bench: Bench, stack: NetworkStack, folder: Path) -> ReplayAnswers:
    folder.mkdir(parents=True)
    pattern = folder / "pattern.toml"
    pattern.write_text(PATTERN)
    settings = ReplaySettings(
        pattern=pattern, warmup_ms=500, duration_ms=2000, grace_ms=500, correction="none"
    )
    replay = Replay(bench, bench.spec.targets[MACHINE], load_pattern(pattern), settings, folder, print)
    replay.stack = (MACHINE, stack)
    return replay.run()


def why_not(answers: ReplayAnswers) -> list[str]:
    return why_not_carried(StackProof.read(answers.folder / STACK_PROOF), recv_result(answers.recv))


def test_it_is_put_on_every_node_of_a_replay(bench: Bench, stack: NetworkStack, tmp_path: Path) -> None:
    interfaces = ends_of(bench, stack)
    assert interfaces == {"p01": "", "p02": "", MACHINE: "test0"}
    with network_stack_on(stack, bench, MACHINE, interfaces, tmp_path):
        folders = {stack.folder_on(node) for node in interfaces}
        assert len(folders) == len(interfaces), "namespaces share the machine's file system"
        for node in interfaces:
            assert counters(stack, bench, node).delivered_frames == 0
    with network_stack_on(stack, bench, MACHINE, interfaces, tmp_path):
        pass  # and it has left nothing that stands in its way


def test_what_a_killed_run_has_left_is_ended(bench: Bench, stack: NetworkStack, tmp_path: Path) -> None:
    context = network_stack_on(stack, bench, MACHINE, ends_of(bench, stack), tmp_path)
    context.__enter__()  # and nothing ends it
    with network_stack_on(stack, bench, MACHINE, ends_of(bench, stack), tmp_path):
        assert counters(stack, bench, MACHINE).delivered_frames == 0
    context.gen.close()  # type: ignore[attr-defined]


def test_what_a_stack_of_a_killed_run_has_set_is_given_back_whatever_comes_next(
    bench: Bench, tmp_path: Path
) -> None:
    """By provisioning, before it takes what it finds there for what the machine had."""
    target = bench.spec.targets[MACHINE]
    place = f"/sys/class/net/{target.test_interface}/gro_flush_timeout"
    before = bench.node(MACHINE).run(["cat", place]).stdout
    settings = tmp_path / "kernel-tuned.conf"
    settings.write_text("# Of all that it sets, what every card has.\nnic gro_flush_timeout 200000\n")
    tuned = load_network_stack(TARGETS / MACHINE, "kernel-tuned")
    assert tuned.install is not None
    files = [str(settings) if file.endswith(settings.name) else file for file in tuned.install.files]
    tuned = replace(tuned, install=replace(tuned.install, files=tuple(files)))
    context = network_stack_on(tuned, bench, MACHINE, {MACHINE: target.test_interface}, tmp_path)
    context.__enter__()  # and nothing ends it
    assert bench.node(MACHINE).run(["cat", place]).stdout != before
    Provisioner(bench.node(MACHINE), target).restore()
    assert bench.node(MACHINE).run(["cat", place]).stdout == before
    context.gen.close()  # type: ignore[attr-defined]


def test_a_machine_without_the_interface_is_skipped(
    bench: Bench, stack: NetworkStack, tmp_path: Path
) -> None:
    with (
        pytest.raises(CapabilityError, match=r"network stack rtdip: linux: .*no such interface"),
        network_stack_on(stack, bench, MACHINE, {MACHINE: "test77"}, tmp_path),
    ):
        pass


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "without", "counted"),
    [("rtdip", {"arguments": ()}, "frames"), ("user", {"preload": ()}, "bytes")],
)
def test_it_carries_a_pattern_and_one_that_lies_is_found(
    bench: Bench, tmp_path: Path, name: str, without: dict[str, tuple[()]], counted: str
) -> None:
    """Programs of the one that lies take the kernel's sockets after all: its replay is whole all the same."""
    stack = load_network_stack(TARGETS / MACHINE, name)
    with network_stack_on(stack, bench, MACHINE, ends_of(bench, stack), tmp_path / "stack"):
        carried = replayed(bench, stack, tmp_path / "carried")
        lied = replayed(bench, replace(stack, **without), tmp_path / "lied")
    for answers in (carried, lied):
        assert {stream["lost"] for stream in answers.recv["streams"]} == {0}
        proof = StackProof.read(answers.folder / STACK_PROOF)
        assert (proof.frame_bytes is None) == (counted == "bytes")
    assert why_not(carried) == []
    assert f"not carried by the stack {name}: its counters have 0 of" in why_not(lied)[0]
