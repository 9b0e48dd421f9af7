# SPDX-License-Identifier: Apache-2.0
"""TAI - UTC is read on every node and compared; nodes that differ measure nothing."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hw.errors import BenchError
from hw.open_bench import Nodes
from reports.clock_sync.tai_utc import TAI_UTC, load_tai_utc
from reports.errors import RecordError
from resources.clock_sync.tai_utc import common_tai_utc_s, read_tai_utc


class _Bench:
    """Nodes whose `bw-setclock` prints what is given."""

    def __init__(self, **said: str) -> None:
        self._said = said
        self.asked: list[str] = []
        clock = SimpleNamespace(node="switch")
        self.spec = SimpleNamespace(
            clocks={"host": clock}, reference_clock="host", witness=SimpleNamespace(node="switch")
        )

    def tool(self, node_name: str, tool: str) -> str:
        return f"/tools/{node_name}/{tool}"

    def node(self, name: str) -> Any:
        def run(argv: list[str]) -> Any:
            assert argv == [f"/tools/{name}/bw-setclock"], "an option would change the clock"
            self.asked.append(name)
            return SimpleNamespace(stdout=self._said[name])

        return SimpleNamespace(run=run)


def _says(kernel_s: int) -> str:
    return json.dumps({"frequency_ppb": 0.0, "tick_us": 10000, "tai_utc_s": kernel_s, "status": 64}) + "\n"


def _common(bench: _Bench, nodes: list[str], folder: Path) -> int:
    return common_tai_utc_s(cast(Nodes, bench), nodes, folder)


def test_every_node_is_asked_once_and_the_answers_are_kept(tmp_path: Path) -> None:
    bench = _Bench(target=_says(37), gm=_says(37), switch=_says(0))
    assert _common(bench, ["target", "gm", "target"], tmp_path) == 37
    assert bench.asked == ["target", "gm", "switch"]
    kept = load_tai_utc(tmp_path)
    assert kept is not None
    assert [(node.node, node.kernel_s) for node in kept.nodes] == [("target", 37), ("gm", 37), ("switch", 0)]


def test_kernels_that_agree_on_another_value_are_believed(tmp_path: Path) -> None:
    assert _common(_Bench(target=_says(38), switch=_says(38)), ["target"], tmp_path) == 38


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (
            {"target": 36, "gm": 37, "switch": 0},
            "target 36 s, gm 37 s, switch 37 s (its kernel does not know)",
        ),
        ({"target": 37, "gm": 38, "switch": 37}, "gm 38 s"),
        ({"target": 38, "gm": 38, "switch": 0}, "switch 37 s (its kernel does not know)"),
    ],
)
def test_nodes_that_differ_are_refused(tmp_path: Path, said: dict[str, int], message: str) -> None:
    bench = _Bench(**{name: _says(kernel_s) for name, kernel_s in said.items()})
    with pytest.raises(BenchError) as refused:
        _common(bench, ["target", "gm"], tmp_path)
    assert str(refused.value).startswith("TAI - UTC is not the same on every node: ")
    assert message in str(refused.value)
    assert (tmp_path / TAI_UTC).exists(), "the evidence stays"


@pytest.mark.parametrize(
    "said", ["", "{}", "[]", "no such program", '{"tai_utc_s": "37"}', '{"tai_utc_s": true}']
)
def test_a_node_that_does_not_say_is_refused(said: str) -> None:
    with pytest.raises(BenchError, match="target"):
        read_tai_utc(cast(Nodes, _Bench(target=said)), "target")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", TAI_UTC),
        ('{"nodes":[],"schema":"x/1"}', "schema"),
        ('{"schema":"benchwright.tai_utc/1"}', "nodes"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / TAI_UTC).write_text(text)
    with pytest.raises(RecordError, match=message):
        load_tai_utc(tmp_path)


def test_no_file_is_no_error(tmp_path: Path) -> None:
    assert load_tai_utc(tmp_path) is None
