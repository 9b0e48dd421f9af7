# SPDX-License-Identifier: Apache-2.0
"""By which network stack the programs of a replay were started: evidence beside their answers.

    {"schema": "benchwright.stack_used/1", "nonce": "98ae73aa673f80e1", "stack": "rtdip", "receiver": "t1",
     "counted": "delivered_frames",
     "programs": {"recv": {"node": "t1", "command": ["bw-traffic", "recv", …, "--rtdip", "…"],
                           "preload": []}}}

`programs` is by the name of each answer, `counted` what the ends of the stack were asked for, null where
they cannot be asked. Each program says in its answer what carried its messages (`carrier`), so neither stands
alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

STACK_USED = "stack_used.json"
SCHEMA = "benchwright.stack_used/1"
SYSTEMS_OWN = "kernel"
"""Name of the stack of programs that nobody gave another."""


@dataclass(frozen=True)
class StartedProgram:
    """A program of a replay as it was started: its node, command, and libraries loaded before its own."""

    node: str
    command: tuple[str, ...]
    preload: tuple[str, ...] = ()


def write_stack_used(
    folder: Path,
    nonce: str,
    stack: str,
    receiver: str,
    counted: str | None,
    programs: Mapping[str, StartedProgram],
) -> None:
    """Write the evidence of a replay.

    Args:
        folder: Of the replay.
        nonce: Of its plan.
        stack: Name of the network stack of the target under test.
        receiver: The node that receives.
        counted: `delivered_frames` or `delivered_bytes`; None: the stack's ends cannot be asked.
        programs: By the name of the answer, such as `send-p01`.
    """
    document = {
        "schema": SCHEMA,
        "nonce": nonce,
        "stack": stack,
        "receiver": receiver,
        "counted": counted,
        "programs": {name: asdict(program) for name, program in sorted(programs.items())},
    }
    (folder / STACK_USED).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
