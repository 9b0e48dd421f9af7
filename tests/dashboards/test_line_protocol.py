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


@pytest.mark.parametrize(
    ("tags", "fields", "time_ns", "message"),
    [
        *(({}, {"v": value}, 1, "field v") for value in [math.nan, math.inf, 1 << 63, "two\nlines"]),
        *(({"t": value}, {"v": 1.0}, 1, "tag t") for value in ["", "ends in \\", "two\nlines"]),
        ({}, {"v": 1.0, "time": 2.0}, 1, "reserved"),  # a server drops such a field and still answers 204
        ({}, {}, 1, "no field"),
        ({}, {"v": 1.0}, 1 << 63, "int64"),
    ],
)
def test_a_wrong_point_is_refused(
    tags: dict[str, str], fields: dict[str, Field], time_ns: int, message: str
) -> None:
    with pytest.raises(PointError, match=message):
        Point("m", tags, fields, time_ns)


def test_texts_become_fit() -> None:
    assert tag_text(" a\\b\n") == "a_b"
    assert field_text("two\n lines") == "two lines"
    long = [tag_text("x" * 100 + end) for end in "ab"]
    assert [len(text) for text in long] == [64, 64]
    assert long[0] != long[1]
