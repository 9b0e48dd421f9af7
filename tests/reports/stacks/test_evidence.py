# SPDX-License-Identifier: Apache-2.0
"""Evidence of turns: what is written is read, and what is wrong is refused by file and field."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from reports.errors import RecordError
from reports.stacks.evidence import STACKS, load_stack_turns, read_messages, write_messages
from reports.stacks.turns import TypeMessages
from tests.reports.hostile import damaged
from tests.reports.stacks.sample import CONDITIONS, ROUNDS, write_sample_turns

Json = dict[str, Any]
TURN = "turn-0003.csv"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_sample_turns(tmp_path)
    return tmp_path


def test_what_was_written_is_read(tmp_path: Path) -> None:
    written = write_sample_turns(tmp_path)
    kept, turns = load_stack_turns(tmp_path)
    assert kept == written
    assert [turn.order for turn in turns] == list(range(2 * len(CONDITIONS) * ROUNDS))
    assert turns[3].target_cpu_ns == 9_003_000
    extremes = TypeMessages(np.array([-(2**63), 2**63 - 1]), np.array([0, 2**63 - 1]), 3)
    nothing = np.zeros(0, np.int64)
    write_messages(tmp_path, TURN, {"a, b": extremes, "none": TypeMessages(nothing, nothing, 0)})
    found = read_messages(tmp_path, TURN, {"a, b": 3, "none": 0})
    assert found["a, b"].latency_ns.tolist() == extremes.latency_ns.tolist()
    assert found["a, b"].taken_ns.tolist() == extremes.taken_ns.tolist()
    assert (found["a, b"].lost, len(found["none"].latency_ns)) == (3, 0)


def changed(key: str, value: object) -> Callable[[Json], None]:
    def change(document: Json) -> None:
        *path, last = key.split(".")
        at: Any = document
        for step in path:
            at = at[int(step)] if step.isdecimal() else at[step]
        at[last] = value

    return change


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("schema", "benchwright.stacks/0", "stacks.json.schema: must be benchwright.stacks/1, found"),
        ("stacks.1.name", "kernel", "stacks.json: stacks: 'kernel' stands twice; each name may stand once"),
        ("stacks", [], "stacks.json: stacks: none; a comparison needs at least 2"),
        ("stacks.0.root", True, "stacks.json.stacks[0].root: unknown key (allowed: name, needs_root, "),
        ("types.1.name", "type 0", "stacks.json: types.name: 'type 0' stands twice"),
        ("types.0.budget_ns", 0, "stacks.json: types[0].budget_ns: must be 1..2^63 - 1: 0"),
        ("turns.2.file", "turn-0000.csv", "stacks.json: turns.file: 'turn-0000.csv' stands twice"),
        ("turns.2.file", "../x.csv", "stacks.json: turns[2].file: '../x.csv' is no file of this folder"),
        ("turns.2.file", "gone.csv", "gone.csv: [Errno 2]"),
        ("turns.2.lost", {"type 7": 0}, "stacks.json: turns[2].lost: 'type 7' is none of the types: type 0"),
        ("turns.2.lost.type 1", -1, "stacks.json: turns[2].lost.type 1: must be 0..2^63 - 1: -1"),
        ("turns.2.round", -1, "stacks.json: turns[2].round: must be 0..2^63 - 1: -1"),
        ("turns.2.others_cpu_ns", -1, "stacks.json: turns[2].others_cpu_ns: must be 0..2^63 - 1: -1"),
        ("turns.2.stack", "bbr", "stacks.json: turns: turn 2: stack 'bbr' is none of those compared: kernel"),
        ("turns.2.round", 5, "stacks.json: turns: round "),
        ("turns.2.lost", {"type 0": 0}, "turn-0002.csv: line "),
    ],
)
def test_wrong_facts_are_refused_by_file_and_field(folder: Path, key: str, value: object, said: str) -> None:
    document = json.loads((folder / STACKS).read_text())
    changed(key, value)(document)
    (folder / STACKS).write_text(json.dumps(document))
    with pytest.raises(RecordError) as caught:
        load_stack_turns(folder)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1: expected type,latency_ns,taken_ns"),
        ("type,latency_us,taken_ns\n", "line 1: expected type,latency_ns,taken_ns"),
        ("type,latency_ns,taken_ns\ntype 0,1\n", "line 2: 2 columns, need 3"),
        (
            "type,latency_ns,taken_ns\ntype 0,1,0\ntype 7,1,0\n",
            "line 3: type: 'type 7' is none that the turn",
        ),
        (
            "type,latency_ns,taken_ns\ntype 0,1.5,0\n",
            "line 2: latency_ns: must be a whole number in -2^63..2^63",
        ),
        (
            "type,latency_ns,taken_ns\ntype 0,1,-1\n",
            "line 2: taken_ns: must be a whole number in 0..2^63 - 1",
        ),
        (f"type,latency_ns,taken_ns\ntype 0,{2**63},0\n", "line 2: latency_ns: must be a whole number in"),
        ("type,latency_ns,taken_ns\ntype 0,\u00b2,0\n", "line 2: latency_ns: must be a whole number in"),
    ],
)
def test_a_wrong_table_is_refused_by_line_and_column(folder: Path, text: str, said: str) -> None:
    (folder / TURN).write_text(text)
    with pytest.raises(RecordError) as caught:
        load_stack_turns(folder)
    assert str(caught.value).startswith(f"{TURN}: {said}")


def test_a_damaged_file_is_refused_or_read(tmp_path: Path) -> None:
    write_sample_turns(tmp_path, rounds=2)
    rng = Random(3)
    for name in (STACKS, TURN):
        whole = (tmp_path / name).read_bytes()
        read = 0
        for _ in range(60):
            (tmp_path / name).write_bytes(damaged(whole, rng))
            with suppress(RecordError):
                load_stack_turns(tmp_path)
                read += 1
        assert 0 < read < 60, "any other error is a traceback"
        (tmp_path / name).write_bytes(whole)
