# SPDX-License-Identifier: Apache-2.0
"""Points of an experiment: each value of each axis with each of the others, repeated, in an order."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from typing import Any, cast

from hw.fields import FieldError, Fields
from resources.experiment.substitution import Scalar, is_scalar

POINTS_MAX = 10_000
VALUES_MAX = 1_000


class Order(StrEnum):
    """In which points are measured."""

    GIVEN = "given"  # repeat by repeat, the last axis fastest
    ALTERNATING = "alternating"  # every other repeat backwards: what drifts shows in both directions
    SHUFFLED = "shuffled"  # all repeats together, from a seed


@dataclass(frozen=True)
class Point:
    """One measurement.

    Attributes:
        number: In the order of measurement, from 1.
        repeat: Which of the repeats it belongs to, from 1.
        values: Of each axis.
    """

    number: int
    repeat: int
    values: Mapping[str, Scalar]

    @property
    def words(self) -> str:
        """Return its values in words."""
        said = [f"{name} = {value}" for name, value in self.values.items()]
        return ", ".join([*said, f"repeat {self.repeat}"])


def points_of(table: Fields) -> tuple[Point, ...]:
    """Return the points in the order of their measurement.

    Args:
        table: The experiment, resolved.

    Raises:
        ConfigError: An axis or the order is wrong, or there are too many points.
    """
    axes = _axes(table)
    repeats = table.integer("repeats", 1, POINTS_MAX, 1)
    order = Order(table.text("order", Order.GIVEN, [each.value for each in Order]))
    seed = table.integer("seed", 0, 2**32 - 1, 0)
    count = repeats
    for values in axes.values():
        count *= len(values)
    if count > POINTS_MAX:
        raise FieldError(
            table.file, "axes", f"must be {POINTS_MAX} points at most with all repeats, found {count}"
        )
    once = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    every: list[tuple[int, Mapping[str, Scalar]]] = []
    for repeat in range(1, repeats + 1):
        turned = order is Order.ALTERNATING and repeat % 2 == 0
        every += [(repeat, values) for values in (reversed(once) if turned else once)]
    if order is Order.SHUFFLED:
        random.Random(seed).shuffle(every)  # noqa: S311 - an order, no secret
    return tuple(Point(number, repeat, values) for number, (repeat, values) in enumerate(every, 1))


def _axes(table: Fields) -> dict[str, list[Scalar]]:
    inner = table.child("axes", optional=True)
    if inner is None:
        return {}
    found: dict[str, list[Scalar]] = {}
    for name in inner.names():
        inner.check_name(name, name.replace("_", "-"))
        values: Any = inner.any(name)
        items = cast("list[Any]", values) if isinstance(values, list) else []
        if not 1 <= len(items) <= VALUES_MAX or not all(is_scalar(each) for each in items):
            raise FieldError(
                table.file,
                f"axes.{name}",
                f"must be a list of 1..{VALUES_MAX} texts, numbers, or true and false, found {values!r}",
            )
        found[name] = items
    return found
