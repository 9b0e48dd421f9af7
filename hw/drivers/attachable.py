# SPDX-License-Identifier: Apache-2.0
"""Machines of a virtual bench that make their own network namespace and links."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from hw.bench import VirtualSpec
from hw.drivers.labgrid_api import resource_class
from hw.journal import Journal


@runtime_checkable
class Attachable(Protocol):
    """A labgrid resource that has to be connected to the bench's switch before it is powered."""

    def attach(self, journal: Journal, network: VirtualSpec, own_namespace: str) -> None:
        """Make its namespace and its links; harmless when they are there.

        Args:
            journal: Takes each change down before it is made.
            network: Subnets and rate of the bench.
            own_namespace: Name of the machine's own network namespace.

        Raises:
            BenchError: The machine's links cannot be made.
        """
        ...


def attachable_attributes(resources: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the attributes of such a machine among a target's resources, to be added to, or None."""
    for attributes in resources:
        resource = resource_class(attributes["cls"])
        if resource is not None and hasattr(resource, "attach"):
            return attributes
    return None
