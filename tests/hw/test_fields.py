# SPDX-License-Identifier: Apache-2.0
"""Tables of configuration files: type and range of each value, and no key that nobody asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hw.errors import ConfigError
from hw.fields import FieldError, Fields

ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-200, 200),
    st.floats(allow_nan=True),
    st.text(max_size=5),
    st.lists(st.integers(-200, 200) | st.booleans() | st.text(max_size=2), max_size=3),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)


def _fields(value: object) -> Fields:
    return Fields({"key": value}, "site.toml", "part")


def _accepts(read: Callable[[Fields], object], value: object) -> bool:
    table = _fields(value)
    try:
        read(table)
    except ConfigError as error:
        if str(error).startswith("site.toml: part.key: "):
            return False
        raise
    return True


def _is_integer(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _is_list_of_integers(value: object, low: int, high: int) -> bool:
    if not isinstance(value, list):
        return False
    return all(_is_integer(item, low, high) for item in cast("list[object]", value))


@given(ANYTHING)
def test_accepts_what_is_of_the_type_and_in_the_range_and_nothing_else(value: object) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool) and -1.5 <= value <= 99.5
    assert _accepts(lambda table: table.integer("key", -7, 99), value) == _is_integer(value, -7, 99)
    assert _accepts(lambda table: table.number("key", -1.5, 99.5), value) == number
    assert _accepts(lambda table: table.boolean("key"), value) == isinstance(value, bool)
    assert _accepts(lambda table: table.text("key"), value) == isinstance(value, str)
    assert _accepts(lambda table: table.child("key"), value) == isinstance(value, dict)
    integers = _is_list_of_integers(value, -7, 99)
    assert _accepts(lambda table: table.integers("key", -7, 99), value) == integers


@given(st.text(max_size=40))
def test_names_are_safe_parts_of_paths(text: str) -> None:
    if _accepts(lambda table: table.name("key"), text):
        assert 1 <= len(text) <= 32
        assert set(text) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
        assert text[0] != "-"


@given(st.dictionaries(st.text(st.characters(categories=["Ll"]), min_size=1, max_size=4), st.integers(0, 9)))
def test_finish_refuses_exactly_the_keys_that_nobody_asked_for(data: dict[str, int]) -> None:
    table = Fields(data, "site.toml", "part")
    asked = sorted(data)[::2]
    for key in asked:
        table.integer(key, 0, 9)
    unknown = sorted(set(data) - set(asked))
    if not unknown:
        table.finish()
        return
    with pytest.raises(ConfigError) as refused:
        table.finish()
    assert str(refused.value).startswith(f"site.toml: part.{unknown[0]}: unknown key; known here: ")


def test_a_missing_key_is_named_unless_it_has_a_default() -> None:
    table = Fields({}, "site.toml", "part")
    assert table.integer("count", 1, 9, 3) == 3
    assert table.child("inner", optional=True) is None
    with pytest.raises(ConfigError, match=r"^site\.toml: part\.size: missing$"):
        table.text("size")


def test_inner_tables_carry_their_path() -> None:
    table = Fields({"nodes": {"a": {"x": 1}, 7: {"x": 2}}}, "site.toml", "")
    inner = table.table_of("nodes")
    assert list(inner) == ["a", "7"]
    with pytest.raises(ConfigError, match=r"nodes\.7\.x: must be an integer in 5\.\.6, found 2"):
        inner["7"].integer("x", 5, 6)
    table.finish()


def test_a_key_by_its_old_name_is_taken_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        fields = Fields({"old": 1}, "site.toml", "renamed")
        fields.rename("old", "new")
        assert fields.integer("new", 0, 9) == 1
        fields.finish()
    [said] = caplog.messages
    assert said.startswith("site.toml: renamed.old is new now; ")


def test_a_key_by_its_old_name_and_its_new_one_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^site\.toml: renamed\.old: is new now, which is there, too$"):
        Fields({"old": 1, "new": 1}, "site.toml", "renamed").rename("old", "new")


def test_what_is_wrong_is_there_as_data() -> None:
    with pytest.raises(FieldError) as failure:
        _fields("x: y").integer("key", 0, 9)
    said = "must be an integer in 0..9, found 'x: y'"
    error = failure.value
    assert (error.file, error.key, error.said) == ("site.toml", "part.key", said)
    assert str(error) == f"site.toml: part.key: {said}"
    assert str(FieldError("", "part", said)) == f"part: {said}"
