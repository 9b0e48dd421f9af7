# SPDX-License-Identifier: Apache-2.0
"""What a profile may ask of a comparison of stacks, and what is refused."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from hw.errors import CapabilityError, ConfigError
from hw.fields import Fields
from hw.provisioning import TARGETS
from reports.stacks.capability import QUANTITIES
from resources.network_stack import load_network_stack, stack_names
from resources.profiles import times_of
from resources.requirements_file import load_requirements_file
from resources.stacks.conditions import CONDITIONS
from resources.stacks.settings import (
    TIMES,
    StackTimes,
    checked_seed,
    compared_names,
    stack_times,
)

ROOT = Path(__file__).resolve().parents[3]
REQUIREMENTS = ROOT / "robot" / "stacks" / "requirements" / "stacks_native.toml"
GOOD = {"conditions": ["idle"], "rounds": 8, "warmup_ms": 0, "duration_ms": 500, "grace_ms": 100}


def read(**changed: Any) -> StackTimes:
    return stack_times(Fields({**GOOD, **changed}, "times.toml", "ci"))


def test_every_profile_that_has_the_suite_has_times_that_are_read() -> None:
    profiles = tomllib.loads(TIMES.read_text())
    assert "quick" not in profiles
    for name in profiles:
        assert times_of(name, TIMES, stack_times).conditions


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"conditions": []}, r"times\.toml: ci\.conditions: \[\]; needed: one at least, each once"),
        ({"conditions": ["idle", "idle"]}, r"ci\.conditions: .*; needed: one at least, each once"),
        ({"conditions": ["noisy"]}, r"ci\.conditions: must be a list of idle"),
        ({"rounds": 9}, r"ci\.rounds: 9; needed: an even number"),
        ({"rounds": 6}, r"ci\.rounds: must be an integer in 8\.\.1000, found 6"),
        ({"duration_ms": 100}, r"ci\.duration_ms: must be an integer in 500\.\.600000, found 100"),
        ({"pause_ms": 1}, r"ci\.pause_ms: unknown key"),
    ],
)
def test_times_out_of_range_are_refused(changed: dict[str, Any], said: str) -> None:
    assert read().rounds == 8
    with pytest.raises(ConfigError, match=said):
        read(**changed)


def test_stacks_are_named_with_blanks_or_commas_each_once() -> None:
    assert compared_names(" kernel, user  kernel-tuned") == ("kernel", "user", "kernel-tuned")
    with pytest.raises(CapabilityError, match=r"COMPARED_STACKS: 'user': .* at least 2 stacks"):
        compared_names("user")
    with pytest.raises(ConfigError, match=r"COMPARED_STACKS: stacks: 'user' stands twice"):
        compared_names("user kernel user")


@pytest.mark.parametrize("text", ["", "-1", "1.0", "²", "2147483648", "drawn"])
def test_a_seed_is_a_whole_number(text: str) -> None:
    assert checked_seed("2147483647") == 2**31 - 1
    with pytest.raises(ConfigError, match=r"TURN_SEED: .*; allowed: a whole number in 0\.\.2147483647"):
        checked_seed(text)


def test_the_shipped_requirements_are_under_known_conditions() -> None:
    found = load_requirements_file(REQUIREMENTS, *QUANTITIES).requirements
    assert found
    assert {each.of for each in found} <= {*CONDITIONS}


def test_a_stack_that_runs_a_service_or_changes_settings_says_that_it_needs_root() -> None:
    for kind in sorted(TARGETS.iterdir()):
        for name in stack_names(kind):
            stack = load_network_stack(kind, name)
            assert stack.needs_root == (name != "kernel"), stack.path
            assert bool(stack.driver) == (stack.service is not None), stack.path
