# SPDX-License-Identifier: Apache-2.0
"""Points of an experiment and their order."""

from __future__ import annotations

import pytest

from hw.errors import ConfigError
from hw.fields import Fields
from resources.experiment.points import points_of


def _points(**table: object) -> list[tuple[int, tuple[object, ...]]]:
    found = points_of(Fields(table, "x.toml", ""))
    assert [point.number for point in found] == list(range(1, len(found) + 1))
    return [(point.repeat, tuple(point.values.values())) for point in found]


AXES = {"delay": [0, 5], "load": ["idle", "cpu"]}


def test_without_axes_there_is_one_point() -> None:
    assert _points() == [(1, ())]


def test_the_last_axis_is_fastest() -> None:
    assert _points(axes=AXES) == [(1, (0, "idle")), (1, (0, "cpu")), (1, (5, "idle")), (1, (5, "cpu"))]


def test_every_other_repeat_goes_backwards() -> None:
    assert [values for _, values in _points(axes={"d": [0, 5]}, repeats=3, order="alternating")] == [
        (0,), (5,), (5,), (0,), (0,), (5,),
    ]  # fmt: skip


def test_a_seed_gives_one_order_of_all_points() -> None:
    one = _points(axes=AXES, repeats=5, order="shuffled", seed=7)
    assert one == _points(axes=AXES, repeats=5, order="shuffled", seed=7)
    assert one != _points(axes=AXES, repeats=5, order="shuffled", seed=8)
    assert sorted(one, key=str) == sorted(_points(axes=AXES, repeats=5), key=str)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"axes": {"d": []}}, "x.toml: axes.d: must be a list of 1..1000 texts"),
        ({"axes": {"d": [[1]]}}, "x.toml: axes.d: must be a list of 1..1000 texts"),
        ({"axes": {"D!": [1]}}, "x.toml: axes.D!: must be"),
        (
            {"axes": {"d": list(range(1000)), "e": list(range(11))}},
            "must be 10000 points at most with all repeats",
        ),
        ({"order": "random"}, "x.toml: order: must be one of given, alternating, shuffled, found 'random'"),
        ({"repeats": 0}, "x.toml: repeats: must be an integer in 1..10000, found 0"),
    ],
)
def test_what_is_no_axis_is_refused(table: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        _points(**table)
    assert said in str(error.value)
