# SPDX-License-Identifier: Apache-2.0
"""Files of experiments with one thing wrong: file, line, key, and what is allowed; nothing starts."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from hw.errors import CapabilityError, ConfigError
from hw.path_settings import Flow, PathSettings, RandomLoss
from resources.experiment.components import PathComponent
from resources.experiment.experiment_file import read_experiment_file
from resources.experiment.plan import plan_text
from resources.experiment.toml_text import toml_text
from tests.experiment.lab import ROOT, bench_file

Steps = tuple[str | int, ...]
BENCH = "BENCH"
"""Of a file whose bench is not what is wrong with it."""
NO_TEXT: list[Any] = [1, 2.5, True, [], {}]
NO_WORDS: list[Any] = [1, True, {}, [[]], "plain"]
NO_TABLE: list[Any] = [1, True, "text", []]


def no_integer(low: int, high: int) -> list[Any]:
    """Return what is none, and those beside the range."""
    return ["1", 1.5, True, [], {}, low - 1, high + 1]


def bad_values() -> dict[Steps, list[Any]]:
    """Return what is wrong for each key."""
    found: dict[Steps, list[Any]] = {
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
        found |= {
            ("components", component, "node"): [*NO_TEXT, "", "third"],
            ("components", component, "ready"): [
                *NO_TEXT,
                "",
                "soon",
                "tcp:0",
                "tcp:65536",
                "udp:x",
                "line:",
            ],
            ("components", component, "ok"): [1, "4", True, {}, [256], [-1], ["4"], [True]],
            ("components", component, "files"): [1, "x", True, {}, [1], ["/etc/passwd"], ["a/../../b"]],
            ("components", component, "output_mib"): no_integer(1, 65_536),
            ("components", component, "grace_ms"): no_integer(0, 600_000),
            ("components", component, "reset"): NO_WORDS,
            ("components", component, "bring"): [1, True, {}, "x", [1]],
        }
    found |= {
        ("components", "load", "load"): [1, True, "cpu", []],
        ("components", "load", "load", "kind"): [*NO_TEXT, "", "gpu"],
        ("components", "load", "load", "duration_s"): no_integer(1, 604_800),
        ("components", "load", "load", "sender"): [*NO_TEXT, "", "p01"],
        ("components", "load", "load", "rate_mbit"): ["9", [], {}, 1.5],
        ("components", "kernel", "kernel"): [1, True, {}, "x", [], [1]],
        ("components", "kernel", "buffer_kb"): no_integer(4, 1_000_000),
        ("components", "kernel", "overwrite"): [1, "x", [], {}],
        ("components", "kernel", "optional"): [1, "x", [], {}],
        ("components", "load", "load", "block_bytes"): ["9", -1, 2**63],
        ("phases", 0, "tasks", "load"): ["wait", "run", "work"],
        ("components", "tool", "arguments"): NO_WORDS,
        ("components", "plain", "command"): [*NO_WORDS, []],
        ("components", "tool", "points"): [1, True, {}, "x", [1]],
    }
    for number in range(3):
        found |= {
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
    found |= {
        ("phases", 0, "tasks", "plain"): ["work", "wait", "stop", {"do": "start", "parameters": {}}],
        ("phases", 1, "tasks", "own", "until"): [
            1,
            {},
            {"key": "x"},
            *({"key": "x", "at_most": a} for a in (-1, "y")),
        ],
        ("phases", 2, "tasks", "plain"): ["start", "run", "work"],
    }
    return found


def sound() -> dict[str, Any]:
    """Return an experiment that uses every key."""
    begin = dict.fromkeys(("tool", "plain", "own", "load", "kernel"), "start")
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
            "load": {
                "node": "one",
                "load": {"kind": "network", "duration_s": 9, "sender": "other", "rate_mbit": 9},
            },
            "kernel": {"node": "one", "kernel": ["sched/sched_switch"], "buffer_kb": 64, "overwrite": True},
        },
        "phases": [
            {"name": "begin", "deadline_s": 5, "tasks": begin},
            {
                "name": "work",
                "deadline_s": 5.5,
                "tasks": {"own": {"do": "work", "parameters": {"a": 1}, "until": {"key": "x", "at_most": 3}}},
            },
            {
                "name": "end", "deadline_s": "${rate}",
                "tasks": {"tool": "wait", "plain": "stop", "own": "stop"},
            },
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
    for steps, values in bad_values().items():
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
    for steps in [("components", "load", "load", "kind"), ("phases", 1, "name"), ("phases", 1, "deadline_s")]:
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
        keys = cast("dict[str, Any]", table)
        if not steps or (steps[-1] not in named and (len(steps) < 4 or steps[-1] == "own")):
            yield steps
        for key, value in keys.items():
            if steps[-1:] != ("parameters",):
                yield from _tables(value, (*steps, key))
    elif isinstance(table, list):
        for number, each in enumerate(cast("list[Any]", table)):
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
    table: dict[str, Any] = sound() | {"bench": str(bench_file(tmp_path, "damaged"))}
    components = table.pop("components")
    components["plain"]["grace_ms"] = -1
    (tmp_path / "parts.toml").write_text(toml_text({"components": components}))
    (tmp_path / "a.toml").write_text('include = ["parts.toml"]\n' + toml_text(table))
    with pytest.raises(
        ConfigError, match=r"parts\.toml:\d+: components\.plain\.grace_ms: must be an integer in"
    ):
        read_experiment_file(tmp_path / "a.toml")


PATH = """
schema = "benchwright.experiment/1"
name = "paths"
bench = "BENCH"
axes = {delay_us = [0, 5000]}
nodes = {one = {node = "p01"}, other = {node = "p02"}, target = {kind = "linux-rt"}}
[components.slow]
path = {from = "one", to = "target"}
settings = {delay_us = "${delay_us}", loss = {percent = 1}}
flows = [{protocol = "udp", destination_port = 9611}]
[components.later]
path = {from = "one", to = "target"}
settings = {}
changes = [{at_s = 2, settings = {delay_us = 10}}]
[[phases]]
name = "one"
deadline_s = 5
tasks = {slow = "start"}
[[phases]]
name = "other"
deadline_s = 5
tasks = {slow = "stop", later = "run"}
"""


def _path_file(folder: Path, *changes: tuple[str, str]) -> Path:
    text = PATH.replace("BENCH", str(ROOT / "hw/benches/virtual.yaml"))
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    (folder / "path.toml").write_text(text)
    return folder / "path.toml"


def test_a_path_is_read(tmp_path: Path) -> None:
    found = read_experiment_file(
        _path_file(
            tmp_path,
            (
                'slow = "stop", later',
                'slow = "stop"}\n[[phases]]\nname = "z"\ndeadline_s = 1\ntasks = {later',
            ),
        )
    )
    slow = found.at(found.points[1]).components["slow"]
    assert isinstance(slow, PathComponent)
    assert slow.schedule == ((0.0, PathSettings(delay_us=5000.0, loss=RandomLoss(1.0))),)
    assert slow.flows == (Flow("udp", destination_port=9611),)
    assert "later: run: link p01 towards switch, from 0 s: nothing; from 2 s: delay_us = 10" in plan_text(
        found
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "percent = 1",
            "percent = 101",
            "components.slow.settings.loss: loss.percent: must be in 0..100, found 101",
        ),
        (
            "[0, 5000]",
            "[0, 10000001]",
            "components.slow.settings: delay_us: must be in 0..10000000, found 10000001",
        ),
        (
            "settings = {}",
            "settings = {jitter_us = 5}",
            "components.later.settings: jitter_us: must be in 0..0, found 5",
        ),
        (
            "settings = {}",
            "settings = {seed = -1}",
            "components.later.settings.seed: must be an integer in 0..",
        ),
        ("settings = {}", "settings = {lost = 1}", "components.later.settings.lost: unknown key"),
        (
            "loss = {percent = 1}",
            'jitter_distribution = "cauchy"',
            "jitter_distribution: must be one of uniform",
        ),
        ("loss = {percent = 1}", "rate_kbps = 1000000, limit_packets = 1", "limit_packets: must be in 413.."),
        ("at_s = 2", "at_s = 0", "components.later.changes[1].at_s: must be a number in 0.001"),
        (
            'protocol = "udp"',
            'protocol = "sctp"',
            "components.slow.flows[1]: flow.protocol: must be one of udp, tcp",
        ),
        ('to = "target"', 'to = "one"', "components.slow.path: must lead over a link of the router"),
        (
            'slow = "stop", later = "run"',
            'later = "run"',
            "phases[2].tasks.later: slow treats this path, stop it first",
        ),
    ],
)
def test_settings_of_a_path_are_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_experiment_file(_path_file(tmp_path, (old, new)))
    assert re.match(rf"{re.escape(str(tmp_path))}/path\.toml:\d+: ", str(error.value))
    assert said in str(error.value)


def test_a_path_on_a_bench_without_a_router_is_a_capability(tmp_path: Path) -> None:
    file = _path_file(tmp_path, ('target = {kind = "linux-rt"}', 'target = {kind = "linux"}'))
    with pytest.raises(
        CapabilityError, match=r"bench native has no router; add benchwright\.topology\.router"
    ):
        read_experiment_file(file, ROOT / "hw/benches/native.yaml")


def test_a_key_of_any_name_has_its_line(tmp_path: Path) -> None:
    file = _file(tmp_path, sound())
    file.write_text('"x: y z" = 1\n' + file.read_text())
    with pytest.raises(ConfigError) as failure:
        read_experiment_file(file)
    assert str(failure.value).startswith(f"{file}:1: x: y z: unknown key; known here: after, ")


def test_a_wrong_include_has_the_line_of_the_file_that_names_it(tmp_path: Path) -> None:
    file = _file(tmp_path, sound())
    file.write_text('include = ["more.toml"]\n' + file.read_text())
    more = tmp_path / "more.toml"
    more.write_text('# more\ninclude = ["none.toml"]\n')
    with pytest.raises(ConfigError) as failure:
        read_experiment_file(file)
    assert str(failure.value) == f"{more}:2: include: must name files, found 'none.toml'"
