# SPDX-License-Identifier: Apache-2.0
"""Files of experiments that are made up from a seed."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from resources.experiment.toml_text import toml_text
from tests.experiment.lab import bench_file

WORDS = [
    "a",
    "Öl",
    'with "quotes"',
    "back\\slash",
    "tab\there",
    "line\nend",
    "#no comment",
    "$HOME",
    "é \u2028 x",
    "",
]


def experiment_table(draw: random.Random, bench: Path) -> dict[str, Any]:
    """Return the table of an experiment, sound but of no sense."""
    parameters = {
        f"p{number}": draw.choice([draw.randrange(9), draw.random(), True, *WORDS]) for number in range(3)
    }
    axes: dict[str, list[Any]] = {
        f"axis-{number}": draw.sample([1, 2.5, "x", True, "y z", 7], draw.randrange(1, 4))
        for number in range(draw.randrange(3))
    }
    names = [f"c{number}" for number in range(draw.randrange(1, 5))]
    usable = [f"${{{name}}}" for name in (*parameters, *axes, "repeat", "one.address", "other.node")]

    def word() -> Any:
        return draw.choice(
            [draw.choice(WORDS), draw.choice(usable), f"x={draw.choice(usable)}", draw.randrange(99)]
        )

    components: dict[str, dict[str, Any]] = {}
    for name in names:
        components[name] = {"node": draw.choice(["one", "other"]), "grace_ms": draw.randrange(9999)}
        if draw.random() < 0.5:
            components[name] |= {
                "tool": "bw-traffic",
                "arguments": [word() for _ in range(draw.randrange(4))],
            }
        else:
            components[name] |= {"command": ["prog", *(word() for _ in range(draw.randrange(4)))]}
            components[name] |= {"ready": draw.choice(["phases", "tcp:80", "line:on", "at-once"])}
    phases: list[dict[str, Any]] = [
        {"name": "begin", "deadline_s": draw.randrange(1, 9), "tasks": dict.fromkeys(names, "start")}
    ]
    for number in range(draw.randrange(3)):
        own = [name for name in names if components[name].get("ready") == "phases"]
        if own:
            tasks = {
                name: {"do": f"own-{number}", "parameters": {"v": word(), "w": [1, "x"]}} for name in own
            }
            phases.append({"name": f"middle-{number}", "deadline_s": 2.5, "tasks": tasks})
    return {
        "schema": "benchwright.experiment/1",
        "name": "made-up",
        "bench": str(bench),
        "order": draw.choice(["given", "alternating", "shuffled"]),
        "seed": draw.randrange(100),
        "repeats": draw.randrange(1, 4),
        "parameters": parameters,
        "axes": axes,
        "nodes": {"one": {"node": "p01"}, "other": {"kind": "producer", "kernel": "6"}},
        "components": components,
        "phases": phases,
    }


def made_up_file(folder: Path, seed: int) -> Path:
    """Write an experiment that is made up from a seed."""
    draw = random.Random(seed)
    file = folder / "experiment.toml"
    file.write_text(toml_text(experiment_table(draw, bench_file(folder, "made-up"))), encoding="utf-8")
    return file
