# SPDX-License-Identifier: Apache-2.0
"""What guests of one kind run on: the machine that QEMU emulates, and the compiler for its processor.

It stands in the kind's own recipe, table `[machine]`: another board needs no line here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hw.errors import ConfigError
from hw.fields import Fields

ACCELERATOR = {"kvm": "kvm", "tcg": "tcg,thread=multi"}
"""What runs a guest → `-accel` of QEMU."""


@dataclass(frozen=True)
class MachineType:
    """What QEMU emulates for a kind of target.

    Attributes:
        program: Of QEMU.
        board: For `-M`.
        cpu: For `-cpu`, by accelerator; one that is not named is not possible.
        compiler: C compiler for its processor.
        compiler_package: Debian package of the compiler.
    """

    program: str
    board: str
    cpu: Mapping[str, str]
    compiler: str
    compiler_package: str


def read_machine(table: Fields, path: Path) -> MachineType:
    """Read the table `[machine]` of a recipe.

    Raises:
        ConfigError: A field is wrong; names file and field.
    """
    cpu = {name: table.text(f"cpu_{name}") for name in ACCELERATOR if table.has(f"cpu_{name}")}
    if "tcg" not in cpu:
        raise ConfigError(f"{path}: machine.cpu_tcg: missing: any machine can emulate it")
    program, board = table.text("program"), table.text("board")
    machine = MachineType(program, board, cpu, table.text("compiler"), table.text("compiler_package"))
    table.finish()
    return machine
