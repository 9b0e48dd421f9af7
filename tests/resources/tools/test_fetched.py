# SPDX-License-Identifier: Apache-2.0
"""Files that are fetched from a node that says what it likes of their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from hw.protocols import Node
from resources.daq_replay.replay import RECV_FILES
from resources.tools.fetched import fetch_known, plain_names


class _Liar:
    """Says that its folder holds what this machine has elsewhere."""

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def files(self, _folder: str) -> list[str]:
        return self.names

    def get(self, remote: str, local: Path) -> None:
        local.write_text(remote)


def test_only_what_the_tool_leaves_is_fetched(tmp_path: Path) -> None:
    folder = tmp_path / "attempt-1" / "target"
    folder.mkdir(parents=True)
    other = tmp_path / "attempt-1" / "send-p01.ndjson"
    other.write_text("evidence of another node")
    (folder / "plan.toml").write_text("the plan")
    node = _Liar(["../send-p01.ndjson", "plan.toml", "misses.ndjson", str(tmp_path / "x"), ""])
    fetch_known(cast("Node", cast("Any", node)), "/run/recv", RECV_FILES, folder)
    assert other.read_text() == "evidence of another node"
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        "plan.toml": "the plan",
        "misses.ndjson": "/run/recv/misses.ndjson",
    }


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "/x", "a/b/c", "a//b", "-x", ".x", "a\n", "a b", "a\\b", "c:x", "x" * 101]
)
def test_names_that_lead_elsewhere_are_none(name: str) -> None:
    assert plain_names([name, "ok.log", "log/ok.log"], folders=1) == ["ok.log", "log/ok.log"]
    assert plain_names(["log/ok.log"]) == []
