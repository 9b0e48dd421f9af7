# SPDX-License-Identifier: Apache-2.0
"""A file of a graph is read strictly: whatever is wrong in it is named with its line, and what may be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reports.errors import RecordError
from reports.timeline.processing.data import Values
from reports.timeline.processing.graph_file import read_graph, read_raw
from reports.timeline.processing.known_filters import filters_here, filters_of_site

WHOLE = """\
[steps]
table = {filter = "csv", inputs = "figures"}
figures = {filter = "statistics", inputs = ["length"]}
length = {filter = "interval", inputs = "ways"}
ways = {filter = "match", inputs = ["sent", "read"], by = ["lane", "tag"], within_ns = 1_000}
sent = {filter = "select", inputs = "events", name = "sent"}
read = {filter = "select", inputs = "events", name = "last byte read", tag = [1, inf]}

[steps.events]
filter = "run"
timeline = "daq_replay/*"
"""


def test_the_order_of_a_graph_is_that_of_its_inputs() -> None:
    steps = read_graph(read_raw(WHOLE.encode(), "late.toml"), filters_here())
    names = [step.name for step in steps]
    assert sorted(names) == sorted(["table", "figures", "length", "ways", "sent", "read", "events"])
    for step in steps:
        assert all(names.index(each) < names.index(step.name) for each in step.inputs)


WRONG: dict[str, tuple[str, str, str]] = {
    "no TOML": ('"csv", ', '"csv" ', r"^late\.toml: .*line 2"),
    "unknown table": (
        "[steps.events]",
        "[step.events]",
        r"^late\.toml:9: step: unknown key .allowed: folder, steps",
    ),
    "unknown key": (
        'name = "sent"',
        'nam = "sent"',
        r"^late\.toml:6: steps\.sent\.nam: unknown key of filter select .allowed: filter, inputs, node, lane",
    ),
    "unknown key in a table of its own": (
        "timeline =",
        "place =",
        r"^late\.toml:11: steps\.events\.place: unknown key of filter run .allowed: filter, timeline\)",
    ),
    "inputs of a source": (
        "timeline =",
        "inputs =",
        r"^late\.toml:11: steps\.events\.inputs: unknown key of filter run .allowed: filter, timeline\)",
    ),
    "unknown filter": (
        '"interval"',
        '"length"',
        r"^late\.toml:4: steps\.length\.filter: unknown filter 'length' .allowed: contradictions, csv, ",
    ),
    "no filter": ('filter = "run"\n', "", r"^late\.toml:9: steps\.events\.filter: missing .allowed: "),
    "unknown input": (
        '"ways"}',
        '"way"}',
        r"^late\.toml:4: steps\.length\.inputs: unknown step 'way' .allowed: table, figures, length, ",
    ),
    "a cycle": (
        'inputs = "events", name = "sent"',
        'inputs = "sent", name = "sent"',
        r"^late\.toml:6: steps\.sent\.inputs: a cycle: sent -> sent",
    ),
    "another kind of input": (
        'inputs = "ways"',
        'inputs = "sent"',
        r"^late\.toml:4: steps\.length\.inputs: sent gives events, filter interval takes pairs$",
    ),
    "an input that writes files": (
        'inputs = "ways"',
        'inputs = "table"',
        r"^late\.toml:4: steps\.length\.inputs: table gives files alone, filter interval takes pairs$",
    ),
    "one input of two": (
        '["sent", "read"]',
        '["sent"]',
        r"^late\.toml:5: steps\.ways\.inputs: filter match takes 2, found 1$",
    ),
    "no input of any number": (
        '["length"]',
        "[]",
        r"^late\.toml:3: steps\.figures\.inputs: filter statistics takes 1 or more, found 0$",
    ),
    "inputs that are no names": (
        '["length"]',
        "[1]",
        r"^late\.toml:3: steps\.figures\.inputs: must be the name of a step, or a list of names$",
    ),
    "a key that is needed": (
        ", within_ns = 1_000",
        "",
        r"^late\.toml:5: steps\.ways: filter match needs the key within_ns$",
    ),
    "a text for a number": (
        "1_000",
        '"1 s"',
        r"^late\.toml:5: steps\.ways\.within_ns: must be a whole number from -\d+ to \d+, found '1 s'$",
    ),
    "a truth for a number": ("1_000", "true", r"^late\.toml:5: steps\.ways\.within_ns: must be a whole"),
    "too large a number": ("1_000", "9" * 30, r"^late\.toml:5: steps\.ways\.within_ns: must be a whole"),
    "a range that goes back": (
        "[1, inf]",
        "[2, 1]",
        r"^late\.toml:7: steps\.read\.tag: must be \[FROM, TO\], numbers or inf, .* found \[2, 1\]$",
    ),
    "a range of no number": ("[1, inf]", "[1, nan]", r"^late\.toml:7: steps\.read\.tag: must be "),
    "a name of other letters": ("length =", '"a/b" =', r"^late\.toml:4: steps\.a/b: a name has 1 to 64 of"),
    "a name of evidence": ("length =", "attempt-2 =", r"^late\.toml:4: steps\.attempt-2: a name has 1 to 64"),
    "a step that is no table": (
        '{filter = "interval", inputs = "ways"}',
        "7",
        r"^late\.toml:4: steps\.length: must be a table with a filter$",
    ),
    "nothing that writes": (
        'table = {filter = "csv", inputs = "figures"}\n',
        "",
        r"^late\.toml:1: steps: none of them writes a file .what does: csv, export, jsonl, ",
    ),
    "no folder": ("[steps]", 'folder = ""\n[steps]', r"^late\.toml:1: folder: must be the name of a folder$"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_named(what: str) -> None:
    old, new, says = WRONG[what]
    assert WHOLE.count(old) == 1
    with pytest.raises(RecordError, match=says):
        read_graph(read_raw(WHOLE.replace(old, new).encode(), "late.toml"), filters_here())


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", r"^late\.toml:1: steps: must be a table of 1 to 1000 steps$"),
        (b"\xff", r"^late\.toml: 'utf-8' codec"),
        (b"steps = 3", r"^late\.toml:1: steps: must be a table of 1 to 1000 steps$"),
        (b"#" * (1 << 20) + b"#", r"^late\.toml: more than 1048576 bytes$"),
        (b"steps = " + b"[" * 5000 + b"]" * 5000, r"^late\.toml: "),
    ],
)
def test_what_is_no_file_of_a_graph(data: bytes, says: str) -> None:
    with pytest.raises(RecordError, match=says):
        read_raw(data, "late.toml")


def test_a_cycle_of_several_steps_is_shown() -> None:
    text = '[steps]\na = {filter = "join", inputs = "b"}\nb = {filter = "join", inputs = "c"}\n'
    text += 'c = {filter = "join", inputs = ["a"]}\nd = {filter = "csv", inputs = "a"}\n'
    with pytest.raises(RecordError, match=r"inputs: a cycle: ([abc]) -> [abc] -> [abc] -> \1$"):
        read_graph(read_raw(text.encode(), "late.toml"), filters_here())


def test_the_examples_of_the_page_are_right(repository: Path) -> None:
    page = (repository / "docs/timeline.md").read_text().partition("## Post-processing\n")[2]
    example = page.partition("```toml\n")[2].partition("```")[0]
    steps = read_graph(read_raw(example.encode(), "late.toml"), filters_here())
    assert len(example.splitlines()) == 10
    assert {step.name for step in steps if not step.filter.output} == {"table", "picture", "story"}
    code = page.partition("```python\n")[2].partition("```")[0]
    [less] = filters_of_site({"ours.py": code.encode()}, filters_here()).values()
    assert (less.name, list(less.parameters), less.output) == ("less", ["by_ns"], Values)


def test_the_page_has_a_row_for_each_filter_with_its_keys(repository: Path) -> None:
    page = (repository / "docs/timeline.md").read_text().partition("### Filters\n")[2].partition("\n\n")[0]
    rows = [line.split("|") for line in page.splitlines()[2:]]
    said = {name: row[4] for row in rows for name in re.findall(r"`(\w+)`", row[1])}
    known = filters_here()
    assert sorted(said) == sorted(known)
    for name, each in known.items():
        for key, parameter in each.parameters.items():
            assert f"`{key}`" in said[name], name
            assert (f"**`{key}`**" in said[name]) == parameter.needed, name
