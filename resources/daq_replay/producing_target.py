# SPDX-License-Identifier: Apache-2.0
"""A target in the place of one producer of its bench, while another target consumes the pattern."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hw.bench import BenchSpec, ProducerSpec, TargetSpec
from hw.errors import CapabilityError
from reports.daq_replay.role import ReplayRole


@dataclass(frozen=True)
class ProducingTarget:
    """Who produces in whose place, and who consumes; see `producing_target`."""

    target: TargetSpec
    number: int
    """Of the producer whose place the target takes."""
    consumer: TargetSpec

    @property
    def role(self) -> ReplayRole:
        """Return the same as evidence says it."""
        return ReplayRole(self.target.kind, self.number, self.consumer.kind)

    def in_place(self, spec: BenchSpec) -> BenchSpec:
        """Return the bench with the target's node and address in the place of the producer's.

        On a bench of real machines the impairment node is left out: its file says whose links lead through
        it, and those are producers'.
        """
        own = ProducerSpec(self.number, self.target.node, self.target.test_address)
        router = spec.router if spec.virtual is not None else None
        return replace(spec, producers={**spec.producers, self.number: own}, router=router)


def producing_target(spec: BenchSpec, target: str, number: int, consumer: str) -> ProducingTarget:
    """Choose who produces and who consumes.

    Args:
        spec: The bench.
        target: Name of the target that produces.
        number: Of the producer whose place it takes.
        consumer: Name of the target that consumes.

    Raises:
        CapabilityError: The bench lacks one of them, or nobody can ask the producing target's clock.
    """
    for name in (target, consumer):
        if name not in spec.targets:
            raise CapabilityError(
                f"bench {spec.name}: no target {name!r}; there are: {', '.join(spec.targets)}"
            )
    if target == consumer:
        raise CapabilityError(f"target {target} cannot produce into itself: choose another consumer")
    if number not in spec.producers:
        raise CapabilityError(f"bench {spec.name}: no producer {number}; add it under benchwright.producers")
    clock = spec.nodes[spec.targets[target].node].clock
    if clock not in spec.clocks:
        raise CapabilityError(
            f"bench {spec.name}: nobody can ask the clock {clock!r} of target {target};"
            f" add it to benchwright.clocks of {spec.path}"
        )
    return ProducingTarget(spec.targets[target], number, spec.targets[consumer])
