# SPDX-License-Identifier: Apache-2.0
"""Facts that differ are named; equal is only what is equal byte for byte."""

from __future__ import annotations

import json

import pytest

from resources.tools.fact_differences import BYTES, differing_facts, differing_lasting_facts

FACTS = {
    "kernel": {"release": "6.1", "preempt_rt": True},
    "nics": [{"name": "test0", "gro": "on"}],
    "none": {},
}


def test_equal_bytes_differ_in_nothing() -> None:
    assert differing_facts(json.dumps(FACTS), json.dumps(FACTS)) == ()


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"kernel": {"release": "6.2", "preempt_rt": True}}, ("kernel.release",)),
        ({"kernel": {"release": "6.1", "preempt_rt": 1}}, ("kernel.preempt_rt",)),
        ({"nics": [{"name": "test0", "gro": "off"}]}, ("nics.0.gro",)),
        ({"nics": []}, ("nics.0.name", "nics.0.gro", "nics")),
        ({"none": {"more": 1}}, ("none", "none.more")),
        ({"other": None}, ("other",)),
    ],
)
def test_what_differs_is_named(change: dict[str, object], names: tuple[str, ...]) -> None:
    assert differing_facts(json.dumps(FACTS), json.dumps({**FACTS, **change})) == names


def test_the_same_in_other_bytes_is_a_difference() -> None:
    assert differing_facts(json.dumps(FACTS), json.dumps(FACTS, indent=1)) == (BYTES,)


def test_what_a_restart_changes_by_itself_is_no_difference() -> None:
    """The kernel leaves other bytes of the memory, and gives interrupts other numbers."""
    before = {**FACTS, "memory_bytes": 1000, "settings": {"irq_25": "1", "governor": "performance"}}
    after = {**before, "memory_bytes": 996, "settings": {"irq_31": "1", "governor": "performance"}}
    assert differing_facts(json.dumps(before), json.dumps(after)) != ()
    assert differing_lasting_facts(json.dumps(before), json.dumps(after)) == ()
    after["settings"] = {"irq_31": "1", "governor": "powersave"}
    assert differing_lasting_facts(json.dumps(before), json.dumps(after)) == ("settings.governor",)
