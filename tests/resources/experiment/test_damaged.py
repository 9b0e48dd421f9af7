# SPDX-License-Identifier: Apache-2.0
"""Files of experiments with one thing wrong: file, line, key, and what is allowed; nothing starts."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hw.errors import ConfigError
from resources.experiment.experiment_file import read_experiment_file
from resources.experiment.toml_text import toml_text
from tests.experiment.lab import bench_file

Steps = tuple[str | int, ...]
BENCH = "BENCH"
"""Of a file whose bench is not what is wrong with it."""
NO_TEXT: list[Any] = [1, 2.5, True, [], {}]
NO_WORDS: list[Any] = [1, True, {}, [[]], "plain"]
NO_TABLE: list[Any] = [1, True, "text", []]


def no_integer(low: int, high: int) -> list[Any]:
    """Return what is none, and those beside the range."""
    return ["1", 1.5, True, [], {}, low - 1, high + 1]


BAD: dict[Steps, list[Any]] = {
    ("schema",): [*NO_TEXT, "", "benchwright.experiment/2"],
    ("name",): [*NO_TEXT, "", "With Blank", "-x", "x" * 33],
    ("bench",): [*NO_TEXT, ""],
    ("order",): [*NO_TEXT, "random", ""],
    ("seed",): no_integer(0, 2**32 - 1),
    ("repeats",): no_integer(1, 10_000),
    ("axes",): NO_TABLE,
    ("axes", "rate"): [1, "x", True, {}, [], [[]], [{}]],
    ("nodes",): NO_TABLE,
    ("nodes", "one", "node"): [*NO_TEXT, "", "p03", "one"],
    ("nodes", "other", "kind"): [*NO_TEXT, "", "linux-rt"],
    ("nodes", "other", "kernel"): NO_TEXT,
    ("nodes", "other", "tools"): [1, True, {}, "text", [1], [[]]],
    ("components",): NO_TABLE,
    ("phases",): [1, True, "text", {}, [], [1]],
    ("after",): [1, True, "text", {}, [1]],
    ("after", 0, "command"): [*NO_WORDS, []],
}
for component in ("tool", "plain", "own"):
    BAD |= {
        ("components", component, "node"): [*NO_TEXT, "", "third"],
        ("components", component, "ready"): [*NO_TEXT, "", "soon", "tcp:0", "tcp:65536", "udp:x", "line:"],
        ("components", component, "ok"): [1, "4", True, {}, [256], [-1], ["4"], [True]],
        ("components", component, "files"): [1, "x", True, {}, [1], ["/etc/passwd"], ["a/../../b"]],
        ("components", component, "output_mib"): no_integer(1, 65_536),
        ("components", component, "grace_ms"): no_integer(0, 600_000),
        ("components", component, "reset"): NO_WORDS,
        ("components", component, "bring"): [1, True, {}, "x", [1]],
    }
BAD |= {
    ("components", "tool", "arguments"): NO_WORDS,
    ("components", "plain", "command"): [*NO_WORDS, []],
    ("components", "tool", "points"): [1, True, {}, "x", [1]],
}
for number in range(3):
    BAD |= {
        ("phases", number, "name"): [*NO_TEXT, "", "Big", "collect"],
        ("phases", number, "deadline_s"): ["1", True, [], {}, 0, -1, 604_801, 0.05],
        ("phases", number, "tasks"): [*NO_TABLE, {}, {"nobody": "start"}],
        ("phases", number, "tasks", "own"): [
            1,
            True,
            [],
            {},
            "",
            "BAD",
            [1],
            {"do": 1},
            {"do": "work", "x": 1},
        ],
    }
BAD |= {
    ("phases", 0, "tasks", "plain"): ["work", "wait", "stop", {"do": "start", "parameters": {}}],
    ("phases", 1, "tasks", "own", "until"): [
        1,
        {},
        {"key": "x"},
        *({"key": "x", "at_most": a} for a in (-1, "y")),
    ],
    ("phases", 2, "tasks", "plain"): ["start", "run", "work"],
}


def sound() -> dict[str, Any]:
    """Return an experiment that uses every key."""
    common: dict[str, Any] = {
        "ok": [4], "files": ["x*"], "output_mib": 1, "grace_ms": 10, "reset": ["true"], "bring": ["x.py"],
    }  # fmt: skip
    return {
        "schema": "benchwright.experiment/1",
        "name": "sound",
        "bench": BENCH,
        "order": "shuffled",
        "seed": 3,
        "repeats": 2,
        "axes": {"rate": [1, 2]},
        "nodes": {
            "one": {"node": "p01"},
            "other": {"kind": "producer", "kernel": "6", "tools": ["sh"]},
        },
        "components": {
            "tool": {
                "node": "one", "tool": "bw-traffic", "arguments": ["x", "${rate}"], "ready": "json",
                "points": ["a"], **common,
            },
            "plain": {"node": "other", "command": ["sh", "@x.py"], "ready": "tcp:80", **common},
            "own": {"node": "other", "command": ["sh"], "ready": "phases", **common},
        },
        "phases": [
            {"name": "begin", "deadline_s": 5, "tasks": {"tool": "start", "plain": "start", "own": "start"}},
            {
                "name": "work",
                "deadline_s": 5.5,
                "tasks": {"own": {"do": "work", "parameters": {"a": 1}, "until": {"key": "x", "at_most": 3}}},
            },
            {"name": "end", "deadline_s": "${rate}", "tasks": {"tool": "wait", "plain": "stop", "own": "stop"}},
        ],
        "after": [{"command": ["true"]}],
    }  # fmt: skip


def name_of(steps: Steps) -> str:
    """Return a path as messages have it: lists are numbered from 1."""
    said = ""
    for step in steps:
        said += f"[{step + 1}]" if isinstance(step, int) else f".{step}" if said else step
    return said


def inner(table: Any, steps: Steps) -> Any:
    """Return what a path leads to."""
    for step in steps:
        table = table[step]
    return table


def damaged() -> Iterator[tuple[str, dict[str, Any]]]:
    """Give each table with one thing wrong, and the path that has to be named."""
    for steps, values in BAD.items():
        for value in values:
            table = sound()
            inner(table, steps[:-1])[steps[-1]] = value
            yield name_of(steps), table
    for steps in _tables(sound()):
        table = sound()
        inner(table, steps)["unheard-of"] = 1
        yield name_of((*steps, "unheard-of")), table
    for steps in [("schema",), ("name",), ("bench",), ("nodes",), ("components",), ("phases",)]:
        table = sound()
        del table[steps[0]]
        yield name_of(steps), table
    for steps in [("components", "plain", "command"), ("phases", 1, "name"), ("phases", 1, "deadline_s")]:
        table = sound()
        del inner(table, steps[:-1])[steps[-1]]
        yield name_of(steps), table
    for text in ("${nothing}", "x${one}", "${}"):
        table = sound()
        table["components"]["plain"]["command"] = ["sh", text]
        yield "components.plain.command", table


def _tables(table: Any, steps: Steps = ()) -> Iterator[Steps]:
    """Give the paths of the tables that have keys of their own."""
    named = {"axes", "nodes", "components", "tasks", "parameters"}
    if isinstance(table, dict):
        if not steps or (steps[-1] not in named and (len(steps) < 4 or steps[-1] == "own")):
            yield steps
        for key, value in table.items():
            if steps[-1:] != ("parameters",):
                yield from _tables(value, (*steps, key))
    elif isinstance(table, list):
        for number, each in enumerate(table):
            yield from _tables(each, (*steps, number))


CASES = list(damaged())


def _file(folder: Path, table: dict[str, Any]) -> Path:
    bench = bench_file(folder, "damaged")
    (folder / "x.py").touch()
    if table.get("bench") == BENCH:
        table = {**table, "bench": str(bench)}
    file = folder / "experiment.toml"
    file.write_text(toml_text(table))
    return file


def test_there_are_many() -> None:
    assert len(CASES) >= 300


def test_the_sound_one_is_read(tmp_path: Path) -> None:
    table = copy.deepcopy(sound()) | {"bench": str(bench_file(tmp_path, "damaged"))}
    (tmp_path / "experiment.toml").write_text(toml_text(table))
    assert len(read_experiment_file(tmp_path / "experiment.toml").points) == 4


def test_each_is_refused_with_file_line_and_key(tmp_path: Path) -> None:
    wrong: list[str] = []
    for path, table in CASES:
        file = _file(tmp_path, table)
        try:
            read_experiment_file(file)
        except ConfigError as error:
            said = str(error)
        else:
            said = "it was read"
        place = re.match(rf"{re.escape(str(file))}:(\d+): ([^:]+): (.+)", said, re.DOTALL)
        missing = re.match(rf"{re.escape(str(file))}:( missing|.*: missing)", said) is not None
        if not (place and place[2].startswith(path)) and not (missing and path in said):
            wrong.append(f"{path}: {said[:200]}")
    assert not wrong, f"{len(wrong)} of {len(CASES)}:\n" + "\n".join(wrong[:40])


def test_a_file_that_includes_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('include = ["b.toml"]\n')
    (tmp_path / "b.toml").write_text('include = ["a.toml"]\n')
    with pytest.raises(
        ConfigError, match=r"include: must not come back to a file: .*a\.toml includes .*b\.toml"
    ):
        read_experiment_file(tmp_path / "a.toml")


def test_what_is_no_toml_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('schema = "x"\nname =\n')
    with pytest.raises(ConfigError, match=r"a\.toml: .*line 2"):
        read_experiment_file(tmp_path / "a.toml")


def test_a_fault_in_a_file_that_is_included_names_that_file(tmp_path: Path) -> None:
    table = sound() | {"bench": str(bench_file(tmp_path, "damaged"))}
    components = table.pop("components")
    components["plain"]["grace_ms"] = -1
    (tmp_path / "parts.toml").write_text(toml_text({"components": components}))
    (tmp_path / "a.toml").write_text('include = ["parts.toml"]\n' + toml_text(table))
    with pytest.raises(
        ConfigError, match=r"parts\.toml:\d+: components\.plain\.grace_ms: must be an integer in"
    ):
        read_experiment_file(tmp_path / "a.toml")
