# SPDX-License-Identifier: Apache-2.0
"""Drivers of timed outputs and edge captures against a tool that answers as `bw-edge` does, or does not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hw.drivers.edges import EdgePin, ToolEdgeCapture, ToolTimedOutput
from hw.drivers.local import LocalNode
from hw.errors import BenchError, CapabilityError

TOOL = """#!{python}
import json, signal, sys, time

def say(**line):
    print(json.dumps(line), flush=True)

def end(code=0, **result):
    say(type="result", complete=True, valid=code == 0, arguments=sys.argv[1:], **result)
    sys.exit(code)

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
{body}
"""
PERIODIC = """
say(type="ready", start_ns=3_000_000_000)
signal.sigwait([signal.SIGTERM])
end(fired=7)
"""
CAPTURE = """
say(type="ready")
say(type="progress", count=1)
signal.sigwait([signal.SIGTERM]) if "9000" in sys.argv else None
end({code}, count=3, captures=[[0, 10], [2, 30]], invalid_reasons=["1 lost"])
"""


def _pin(folder: Path, body: str) -> EdgePin:
    tool = folder / "bw-edge"
    tool.write_text(TOOL.format(python=sys.executable, body=body))
    tool.chmod(0o755)
    node = LocalNode("target", "target", 0)
    return EdgePin(node, str(tool), "bench:pin", "phc:/dev/ptp0", folder / "answers" / "edge-timed")


def test_periodic_edges_until_they_are_stopped(tmp_path: Path) -> None:
    output = ToolTimedOutput(_pin(tmp_path, PERIODIC))
    assert output.stop() == {}
    assert output.start_periodic(2_000_000) == 3_000_000_000
    with pytest.raises(BenchError, match="pin bench:pin is in use"):
        output.start_periodic(2_000_000)
    result = output.stop()
    assert result["fired"] == 7
    wanted = "output --pin bench:pin --periodic --start-ns next --period-ns 2000000"
    assert result["arguments"] == wanted.split()
    assert output.start_periodic(5, start_ns=4) == 3_000_000_000
    assert output.stop()["arguments"][-4:] == ["--start-ns", "4", "--period-ns", "5"]  # type: ignore[index]
    assert len(list((tmp_path / "answers").glob("*.ndjson"))) == 2


def test_software_edges_have_the_priority_of_the_node(tmp_path: Path) -> None:
    where = _pin(tmp_path, "import os; assert os.sched_getparam(0).sched_priority == 3" + PERIODIC)
    where.node.priority = 3
    output = ToolTimedOutput(where)
    output.start_periodic(5)
    assert output.stop()["fired"] == 7
    where.node.priority = 0
    with pytest.raises(
        BenchError, match="bw-edge output on target: ended with exit code 1 before it was ready"
    ):
        ToolTimedOutput(where).start_periodic(5)


@pytest.mark.parametrize("code", [0, 4])
def test_captures_with_their_numbers(tmp_path: Path, code: int) -> None:
    capture = ToolEdgeCapture(_pin(tmp_path, CAPTURE.format(code=code)))
    capture.start(3, 1000)
    found = capture.collect(10.0)
    assert found.edges == ((0, 10), (2, 30))
    assert found.seen == 3
    assert found.result["valid"] is (code == 0)
    options = ["--count", "3", "--duration-ms", "1000"]
    assert found.result["arguments"] == ["capture", "--pin", "bench:pin", *options]
    assert found.answer is not None
    assert '"progress"' in found.answer.read_text()
    capture.start(3, 9000)
    assert capture.stop().edges == found.edges
    assert capture.stop().edges == ()
    with pytest.raises(BenchError, match="nothing is being captured"):
        capture.collect(1.0)


@pytest.mark.parametrize(
    ("body", "kind", "wanted"),
    [
        ('sys.exit("no such pin")', BenchError, "exit code 1 before it was ready: no such pin"),
        ('print("igb has no pins", file=sys.stderr); sys.exit(3)', CapabilityError, "bench:pin: .*no pins"),
        ('say(type="ready"); sys.exit(0)', BenchError, "must be an integer|exit code 0 without a result"),
        ('say(type="ready", start_ns=1); sys.exit(2)', BenchError, "exit code 2"),
        (
            'say(type="ready", start_ns=True); end(count=1, captures=[[1]])',
            BenchError,
            "must be an integer|pairs",
        ),
        (
            'say(type="ready", start_ns=1); end(count="1", captures=[])',
            BenchError,
            "must be an integer, found '1'",
        ),
    ],
)
def test_a_tool_that_fails(tmp_path: Path, body: str, kind: type[BenchError], wanted: str) -> None:
    capture = ToolEdgeCapture(_pin(tmp_path, body))
    with pytest.raises(kind, match=wanted):  # noqa: PT012
        capture.start(1, 1000)
        capture.collect(10.0)
