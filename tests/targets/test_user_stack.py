# SPDX-License-Identifier: Apache-2.0
"""The user-mode stack on both ends of a replay, on the native machine; one that lies is found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hw.provisioning import TARGETS
from hw.session import Bench
from reports.latency.stack_proof import StackProof, why_not_carried
from reports.tools.answers import recv_result
from resources.network_stack import NetworkStack, load_network_stack
from resources.network_stack_ends import network_stack_on, stack_interfaces
from resources.replay.pattern import load_pattern
from resources.replay.plan import ReplaySettings
from resources.replay.replay import Replay
from tests.hw.test_hardware_bench import PATTERN

MACHINE = "linux"
pytestmark = [pytest.mark.simulated, pytest.mark.slow]


def causes_of(bench: Bench, stack: NetworkStack, folder: Path) -> list[str]:
    """Replay, all of which comes; return why the stack has not carried it."""
    folder.mkdir(parents=True)
    pattern = folder / "pattern.toml"
    pattern.write_text(PATTERN)
    settings = ReplaySettings(
        pattern=pattern, warmup_ms=500, duration_ms=2000, grace_ms=500, correction="none"
    )
    replay = Replay(bench, bench.spec.targets[MACHINE], load_pattern(pattern), settings, folder, print)
    replay.stack = (MACHINE, stack)
    answers = replay.run()
    assert {stream["lost"] for stream in answers.recv["streams"]} == {0}
    assert isinstance(answers.proof, StackProof)
    assert answers.proof.frame_bytes is None, "it counts bytes"
    return why_not_carried(answers.proof, recv_result(answers.recv))


def test_it_carries_a_pattern_and_one_that_lies_is_found(bench: Bench, tmp_path: Path) -> None:
    stack = load_network_stack(TARGETS / MACHINE, "user")
    interface = bench.spec.targets[MACHINE].test_interface
    interfaces = stack_interfaces(bench.spec, stack, MACHINE, MACHINE, interface)
    with network_stack_on(stack, bench, MACHINE, interfaces, tmp_path / "stack"):
        assert causes_of(bench, stack, tmp_path / "carried") == []
        # Its programs take the kernel's sockets after all.
        said = causes_of(bench, replace(stack, preload=()), tmp_path / "lied")
    assert said[0].startswith("not carried by the stack user: its counters have 0 of at least")
