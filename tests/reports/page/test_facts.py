# SPDX-License-Identifier: Apache-2.0
"""Facts on the page: nothing is dropped, long lists are folded, plain facts stand together."""

from __future__ import annotations

from reports.page.facts import MANY_FACTS, fact_groups

FACTS = {
    "hostname": "bench-1",
    "kernel": {"release": "6.12", "preempt_rt": True},
    "settings": {f"setting {number}": number for number in range(MANY_FACTS + 1)},
    "nics": [{"name": "test0", "driver": {"driver": "igb"}}, {"name": "test1", "mtu": None}],
}


def test_plain_facts_come_first_and_together() -> None:
    first = fact_groups("Target", FACTS)[0]
    assert first.title == "Target"
    assert first.rows == (("hostname", "bench-1"), ("kernel.release", "6.12"), ("kernel.preempt_rt", "yes"))


def test_a_large_table_has_its_own_group() -> None:
    group = fact_groups("Target", FACTS)[1]
    assert (group.title, len(group.rows), group.folded) == ("Target: settings", MANY_FACTS + 1, False)


def test_tables_in_a_table_have_groups_of_their_own() -> None:
    """As instruments: a long dotted key would name each of them again in every row."""
    facts = {
        "scope": {"kind": "oscilloscope", "limits": {str(n): n for n in range(MANY_FACTS)}},
        "card": {"a": 1},
    }
    groups = fact_groups("Host", {"wiring": {}, "instruments": facts})
    assert [(group.title, group.rows[0]) for group in groups] == [
        ("Host: instruments", ("card.a", "1")),
        ("Host: instruments: scope", ("kind", "oscilloscope")),
    ]


def test_a_list_is_folded_and_says_which_item_a_fact_is_of() -> None:
    group = fact_groups("Target", FACTS)[2]
    assert group.folded
    assert ("test0: driver.driver", "igb") in group.rows
    assert ("test1: mtu", "unknown") in group.rows


def test_no_fact_is_dropped() -> None:
    rows = sum(len(group.rows) for group in fact_groups("Target", FACTS))
    assert rows == 1 + 2 + (MANY_FACTS + 1) + 4


def test_a_list_of_tables_and_others_is_a_plain_fact() -> None:
    """A target says what it likes of itself."""
    (group,) = fact_groups("Target", {"irq": [{"irq": 1}, 2], "isolated": [], "names": ["a", "b"]})
    assert group.rows == (("irq", "{'irq': 1}, 2"), ("isolated", "none"), ("names", "a, b"))
