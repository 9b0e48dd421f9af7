# SPDX-License-Identifier: Apache-2.0
"""The C reader of TOML against tomllib: the same values where both read, and never more than TOML allows."""

from __future__ import annotations

import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.patience import HANG_S

Document = dict[str, Any]

# The tables of plans are built anew by the reader's caller, which refuses duplicates: so does _build here.
SETTINGS = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


class RefusedError(Exception):
    """The C reader, or the rule against duplicates, refuses a text."""


def _items(program: Path, text: bytes) -> list[Document]:
    """Return the items that the C reader sees."""
    done = subprocess.run([program], input=text, capture_output=True, check=False, timeout=HANG_S)
    if done.returncode == 1:
        raise RefusedError(done.stderr.decode())
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def _build(items: list[Document]) -> Document:
    """Put items together as TOML means them."""
    root: Document = {}
    arrays: set[str] = set()
    current = root
    for item in items:
        name: str = item["name"]
        if item["kind"] == "a table":
            if name in root:
                raise RefusedError(f"duplicate table {name}")
            root[name] = current = {}
        elif item["kind"] == "an array of tables":
            if name in root and name not in arrays:
                raise RefusedError(f"{name} is no array of tables")
            arrays.add(name)
            current = {}
            root.setdefault(name, []).append(current)
        else:
            if name in current:
                raise RefusedError(f"duplicate key {name}")
            current[name] = item["value"]
    return root


NAMES = st.text("abcXYZ019_-", min_size=1, max_size=8)
BLANKS = st.sampled_from(["", " ", "\t", "  "])
ENDS = st.sampled_from(["\n", "\r\n", " # comment é\n", "\n\n", "\n# [t]\n\n"])
ESCAPES = st.sampled_from(
    ["\\n", "\\t", "\\\\", '\\"', "\\b", "\\f", "\\r", "\\u00e9", "\\U0001F600", "\\u0001", "\\u0080"]
)
PLAIN = st.characters(exclude_categories=("Cs", "Cc"), exclude_characters='"\\')
STRINGS = st.lists(st.one_of(PLAIN, ESCAPES), max_size=30).map(lambda parts: '"' + "".join(parts) + '"')
INTEGERS = st.builds(format, st.integers(-(2**63), 2**63 - 1), st.sampled_from(["", "_", "+"]))
VALUES = st.one_of(STRINGS, INTEGERS, st.sampled_from(["true", "false", "0", "-0", "1_000"]))


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Draw a text of the subset, in any layout, without duplicates."""
    lines: list[str] = []

    def keys() -> None:
        lines.extend(
            f"{draw(BLANKS)}{name}{draw(BLANKS)}={draw(BLANKS)}{draw(VALUES)}{draw(BLANKS)}{draw(ENDS)}"
            for name in draw(st.lists(NAMES, max_size=4, unique=True))
        )

    for name in draw(st.lists(NAMES, max_size=4, unique=True)):
        array = draw(st.booleans())
        for _ in range(draw(st.integers(1, 3)) if array else 1):
            opening, closing = ("[[", "]]") if array else ("[", "]")
            inside = f"{draw(BLANKS)}{name}{draw(BLANKS)}"
            lines.append(f"{draw(BLANKS)}{opening}{inside}{closing}{draw(BLANKS)}{draw(ENDS)}")
            keys()
    return "".join(lines)


@SETTINGS
@given(text=documents())
def test_reads_what_tomllib_reads(toml_dump: Path, text: str) -> None:
    assert _build(_items(toml_dump, text.encode())) == tomllib.loads(text)


MUTATIONS = st.lists(
    st.tuples(
        st.integers(0, 400),
        st.integers(0, 3),
        st.sampled_from(
            [
                *(bytes([byte]) for byte in b"\n\r\"'\\[]=._#0-e\x00\x7f\xff\xc3"),
                *(b"", b"\xed\xa0\x80", b"true", b"1979-05-27", b"{}", b'"""', b"\\u12", b"\xef\xbb\xbf"),
            ]
        ),
    ),
    min_size=1,
    max_size=3,
)


@SETTINGS
@given(text=documents(), mutations=MUTATIONS)
def test_reads_nothing_that_tomllib_refuses(
    toml_dump: Path, text: str, mutations: list[tuple[int, int, bytes]]
) -> None:
    mutated = text.encode()
    for place, removed, inserted in mutations:
        start = min(place, len(mutated))
        mutated = mutated[:start] + inserted + mutated[start + removed :]
    try:
        ours = _build(_items(toml_dump, mutated))
    except RefusedError:
        return  # the subset refuses more than TOML does
    assert ours == tomllib.loads(mutated.decode())
