# SPDX-License-Identifier: Apache-2.0
"""Measurements follow from capabilities; tables stay readable."""

from __future__ import annotations

import pytest

from hw.capability import Capability, Measurement, State, format_table, judge, worst

CAPABILITIES = {
    "good": Capability("good", State.OK, "here"),
    "weak": Capability("weak", State.LIMITED, "slow", "fix it"),
    "absent": Capability("absent", State.MISSING, "nowhere", "get it"),
}


@pytest.mark.parametrize(
    ("needs", "helps", "state", "because"),
    [
        (("good",), (), State.OK, ()),
        (("good", "weak"), (), State.LIMITED, ("weak",)),
        (("weak", "absent"), (), State.MISSING, ("weak", "absent")),
        (("good",), ("weak",), State.OK, ()),
        (("good",), ("absent",), State.LIMITED, ("absent",)),
    ],
)
def test_judges_by_the_worst_need(
    needs: tuple[str, ...], helps: tuple[str, ...], state: State, because: tuple[str, ...]
) -> None:
    verdict = judge(Measurement("m", needs, helps), CAPABILITIES)
    assert (verdict.state, verdict.because) == (state, because)


def test_refuses_a_need_that_nobody_probed() -> None:
    with pytest.raises(KeyError, match="unknown"):
        judge(Measurement("m", ("unknown",)), CAPABILITIES)


def test_worst_of_nothing_is_ok() -> None:
    assert worst([]) is State.OK
    assert worst([State.OK, State.MISSING, State.LIMITED]) is State.MISSING


def test_table_wraps_the_last_column_only() -> None:
    table = format_table(
        ("KEY", "FOUND"), [("a-long-key", "one two three four five six seven eight nine")], 42
    )
    lines = table.splitlines()
    assert lines[0] == "KEY         FOUND"
    assert lines[1] == "a-long-key  one two three four five six"
    assert lines[2] == "            seven eight nine"


def test_table_never_breaks_a_word() -> None:
    command = "x" * 80
    assert command in format_table(("KEY", "DO"), [("k", f"run {command}")], 40)
