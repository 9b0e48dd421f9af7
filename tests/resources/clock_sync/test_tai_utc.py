# SPDX-License-Identifier: Apache-2.0
"""TAI - UTC is read on every node and compared; nodes that differ measure nothing."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hw.errors import BenchError
from reports.clock_sync.tai_utc import TAI_UTC, load_tai_utc
from reports.errors import RecordError
from resources.clock_sync.tai_utc import common_tai_utc_s, read_tai_utc
from tests.fake_bench import FakeBench


def _bench(**said: str) -> FakeBench:
    """Return a bench whose nodes' `bw-setclock` prints what is given."""
    clock = SimpleNamespace(node="switch")
    spec = SimpleNamespace(clocks={"host": clock}, reference_clock="host", witness=clock)
    return FakeBench(spec, answer=lambda node, _argv: (0, said[node], ""))


def _common(bench: Any, nodes: list[str], folder: Path) -> int:
    found = common_tai_utc_s(bench, nodes, folder)
    for name, node in bench.nodes.items():
        assert node.ran == [[f"/{name}/bw-setclock"]], "once, and an option would change the clock"
    return found


def _says(kernel_s: int) -> str:
    return json.dumps({"frequency_ppb": 0.0, "tick_us": 10000, "tai_utc_s": kernel_s, "status": 64}) + "\n"


def test_every_node_is_asked_once_and_the_answers_are_kept(tmp_path: Path) -> None:
    bench = _bench(target=_says(37), gm=_says(37), switch=_says(0))
    assert _common(bench, ["target", "gm", "target"], tmp_path) == 37
    assert list(bench.nodes) == ["target", "gm", "switch"]
    kept = load_tai_utc(tmp_path)
    assert kept is not None
    assert [(node.node, node.kernel_s) for node in kept.nodes] == [("target", 37), ("gm", 37), ("switch", 0)]


def test_kernels_that_agree_on_another_value_are_believed(tmp_path: Path) -> None:
    assert _common(_bench(target=_says(38), switch=_says(38)), ["target"], tmp_path) == 38


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
    bench = _bench(**{name: _says(kernel_s) for name, kernel_s in said.items()})
    with pytest.raises(BenchError) as refused:
        _common(bench, ["target", "gm"], tmp_path)
    assert str(refused.value).startswith("TAI - UTC is not the same on every node: ")
    assert message in str(refused.value)
    assert (tmp_path / TAI_UTC).exists(), "the evidence stays"


@pytest.mark.parametrize(
    "said", ["", "{}", "[]", "no such program", '{"tai_utc_s": "37"}', '{"tai_utc_s": true}']
)
def test_a_node_that_does_not_say_is_refused(said: str) -> None:
    bench: Any = _bench(target=said)
    with pytest.raises(BenchError, match="target"):
        read_tai_utc(bench, "target")


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
