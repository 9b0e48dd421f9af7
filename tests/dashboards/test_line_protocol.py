# SPDX-License-Identifier: Apache-2.0
"""Line protocol: what is written is what a server reads, and what it would misread is refused."""

from __future__ import annotations

import math

import pytest

from dashboards.errors import PointError
from dashboards.line_protocol import Field, Point, field_text, tag_text


def test_line_has_sorted_tags_and_typed_fields() -> None:
    point = Point("hil_run", {"b": "2", "a": "1"}, {"n": 3, "v": 2.0, "ok": True, "text": "x"}, 17)
    assert point.line() == 'hil_run,a=1,b=2 n=3i,ok=true,text="x",v=2.0 17'
    assert point.series == "hil_run,a=1,b=2"


def test_delimiters_are_escaped() -> None:
    point = Point("m", {"t": "a b,c=d"}, {"s": 'say "x\\y", z'}, 1)
    assert point.line() == 'm,t=a\\ b\\,c\\=d s="say \\"x\\\\y\\", z" 1'


@pytest.mark.parametrize("value", [math.nan, math.inf, 1 << 63, "two\nlines"])
def test_values_that_no_field_can_have(value: Field) -> None:
    with pytest.raises(PointError, match="field v"):
        Point("m", {}, {"v": value}, 1)


@pytest.mark.parametrize("value", ["", "ends in \\", "two\nlines"])
def test_values_that_no_tag_can_have(value: str) -> None:
    with pytest.raises(PointError, match="tag t"):
        Point("m", {"t": value}, {"v": 1.0}, 1)


def test_time_is_no_name_of_a_field() -> None:
    """A server drops such a field and still answers 204."""
    with pytest.raises(PointError, match="reserved"):
        Point("m", {}, {"v": 1.0, "time": 2.0}, 1)


def test_point_without_field() -> None:
    with pytest.raises(PointError, match="no field"):
        Point("m", {}, {}, 1)


def test_time_outside_int64() -> None:
    with pytest.raises(PointError, match="int64"):
        Point("m", {}, {"v": 1.0}, 1 << 63)


def test_texts_become_fit() -> None:
    assert tag_text(" a\\b\n") == "a_b"
    assert field_text("two\n lines") == "two lines"
    long = [tag_text("x" * 100 + end) for end in "ab"]
    assert [len(text) for text in long] == [64, 64]
    assert long[0] != long[1]
