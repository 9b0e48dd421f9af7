# SPDX-License-Identifier: Apache-2.0
"""Faults that a virtual target can be given, so that it is seen how the bench takes them."""

from __future__ import annotations

import copy
from dataclasses import replace
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from hw.bench import BenchSpec
from hw.drivers.labgrid_api import parts_of, resource_class
from hw.errors import CapabilityError
from hw.protocols import Node


class Fault(StrEnum):
    """What can be wrong with a target."""

    WRONG_IMAGE = "wrong-image"
    """On its disk is something else than its system."""
    DAMAGED_IMAGE = "damaged-image"
    """Part of its disk cannot be read as what it was."""
    NEVER_BOOTS = "never-boots"
    """It has power, and its processor does nothing."""
    HANGS_AT_PROMPT = "hangs-at-prompt"
    """It stops at a prompt that waits for somebody."""
    LOSES_SSH = "loses-ssh"
    """It runs, and is not reached any more."""
    FULL_DISK = "full-disk"
    """Nothing more can be written where it keeps its own files."""
    CHANGED_HOST_KEY = "changed-host-key"
    """It shows another host key than the known one."""


STRIKING_LATER = frozenset({Fault.LOSES_SSH, Fault.FULL_DISK})
"""Faults of a machine that has come up well; `Faulty.begin_fault` makes them."""


@runtime_checkable
class Faulty(Protocol):
    """A labgrid resource of a virtual machine that can be given a fault by its attribute `fault`.

    `faults`, of its class, are those that it knows.
    """

    fault: str
    faults: frozenset[Fault]

    def begin_fault(self, node: Node) -> None:
        """Let a fault of `STRIKING_LATER` begin; the machine is on and reached.

        Args:
            node: The machine.

        Raises:
            BenchError: The fault cannot be made.
        """
        ...


def with_fault(spec: BenchSpec, node: str, fault: Fault) -> BenchSpec:
    """Return a bench one of whose machines has a fault.

    Args:
        spec: The bench.
        node: The machine.
        fault: What is wrong with it.

    Raises:
        CapabilityError: It is no virtual machine, or one of a kind that cannot have this fault.
    """
    targets: dict[str, Any] = copy.deepcopy(spec.labgrid_targets)
    for name, attributes in parts_of(targets.get(node, {}).get("resources")):
        known: frozenset[Fault] | None = getattr(resource_class(name), "faults", None)
        if known is None:
            continue
        if fault not in known:
            raise CapabilityError(
                f"{node}: {fault} is no fault of a {name}; it can have: {', '.join(sorted(known))}"
            )
        attributes["fault"] = fault.value
        return replace(spec, labgrid_targets=targets)
    raise CapabilityError(f"{node}: {fault}: only a virtual machine can be given a fault")
