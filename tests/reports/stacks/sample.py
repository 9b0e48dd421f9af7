# SPDX-License-Identifier: Apache-2.0
"""Evidence of turns in its documented form, drawn: `user` is faster in type 0, and loses in type 1."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from reports.stacks.evidence import (
    KeptTurn,
    StackNeeds,
    StackTurns,
    StreamType,
    write_messages,
    write_stack_turns,
)
from reports.stacks.turns import TypeMessages, turn_order

TARGET = "linux"
CONDITIONS = ("idle", "lossy")
ROUNDS, MESSAGES = 10, 120
NEEDS = (
    StackNeeds("kernel", needs_root=False, driver="", both_ends=False),
    StackNeeds("user", needs_root=True, driver="AF_XDP", both_ends=True),
)
TYPES = (StreamType("type 0", 1_000_000), StreamType("type 1", 400_000))
FASTER_NS = 30_000


def write_sample_turns(folder: Path, rounds: int = ROUNDS) -> StackTurns:
    """Write turns of two stacks under two conditions, and return what `stacks.json` holds."""
    rng = np.random.default_rng(68)
    turns: list[KeptTurn] = []
    for order, (number, condition, stack) in enumerate(
        turn_order([each.name for each in NEEDS], CONDITIONS, rounds, seed=7)
    ):
        messages: dict[str, TypeMessages] = {}
        for kind in TYPES:
            base = 150_000 + 500 * order - (FASTER_NS if (stack, kind.name) == ("user", "type 0") else 0)
            late = 40_000 * rng.lognormal(0, 0.5, MESSAGES)
            lost = int(rng.binomial(MESSAGES, 0.002)) if (stack, kind.name) == ("user", "type 1") else 0
            taken = np.where(rng.random(MESSAGES) < 0.01, 50_000, 0)
            whole = np.rint(base + late + taken).astype(np.int64)
            messages[kind.name] = TypeMessages(whole[lost:], taken[lost:].astype(np.int64), lost)
        name = f"turn-{order:04}.csv"
        write_messages(folder, name, messages)
        lost_of = {kind: each.lost for kind, each in messages.items()}
        turns.append(KeptTurn(number, condition, stack, name, lost_of, 9_000_000 + 1000 * order, 7_000_000))
    kept = StackTurns(TARGET, 7, NEEDS, TYPES, tuple(turns))
    write_stack_turns(folder, kept)
    return kept
