# SPDX-License-Identifier: Apache-2.0
"""Libraries that are loaded before a program's own: on this machine, with its own loader."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from hw.drivers.local import LocalJob, LocalNode
from hw.drivers.owned import OwnedNode
from hw.errors import BenchError, ConfigError
from hw.preload import start_program
from hw.tools import BUILD, local_library, local_tool
from tests.patience import HANG_S

LIBRARY = str(local_library("libbwtime.so"))
OF_ARM = str(BUILD / "armhf" / "traffic-gen" / "timeservice" / "libbwtime.so")
WITNESS = ["witness", "--period-us", "10000"]


class _Node(LocalNode):
    """This machine; it notes what it starts."""

    def __init__(self) -> None:
        super().__init__("here", "host", 0)
        self.started: list[list[str]] = []

    def start(self, argv: Sequence[str], stem: Path) -> LocalJob:
        self.started.append([*argv])
        return super().start(argv, stem)


class _ForgetfulNode(_Node):
    """Starts programs without the variables that they should have."""

    def start(self, argv: Sequence[str], stem: Path) -> LocalJob:
        return super().start([word for word in argv if not word.startswith("LD_PRELOAD=")], stem)


@pytest.fixture
def node() -> _Node:
    return _Node()


def test_a_library_is_in_the_program_when_it_is_ready(node: _Node, tmp_path: Path) -> None:
    link = tmp_path / "link.so"
    link.symlink_to(LIBRARY)
    argv = [str(local_tool("bw-traffic")), *WITNESS]
    job = start_program(node, argv, tmp_path / "witness", {"ONE": "1"}, [str(link)])
    assert job.name == "bw-traffic on here"
    try:
        job.wait_ready(HANG_S)
        assert os.path.realpath(LIBRARY) in Path(f"/proc/{job.process_id()}/maps").read_text()
        assert b"ONE=1" in Path(f"/proc/{job.process_id()}/environ").read_bytes().split(b"\0")
    finally:
        job.stop()
        assert job.wait(HANG_S) == 0
    assert '"type":"result"' in job.fetch().read_text()


def test_without_libraries_nothing_is_asked(node: _Node, tmp_path: Path) -> None:
    job = start_program(node, ["sh", "-c", "exit 3"], tmp_path / "plain")
    assert job.wait(HANG_S) == 3
    assert node.started == [["sh", "-c", "exit 3"]]


def test_a_static_program_is_refused_before_it_starts(node: _Node, tmp_path: Path) -> None:
    static = [str(local_tool("bw-traffic", "x86_64")), *WITNESS]
    with pytest.raises(
        ConfigError, match=r"here: bw-traffic is linked statically, .* run without .*libbwtime\.so"
    ):
        start_program(node, static, tmp_path / "witness", preload=[LIBRARY])
    assert node.started == []


@pytest.mark.parametrize(
    ("library", "said"),
    [
        (OF_ARM, r"armhf.*libbwtime\.so loaded: ERROR: ld\.so: .* cannot be preloaded \(wrong ELF class"),
        ("/nowhere/libuser.so", r"cannot be preloaded \(cannot open shared object file\): ignored"),
        (__file__, r"cannot be preloaded \(file too short|\(invalid ELF header"),
    ],
)
def test_a_library_that_cannot_be_loaded_is_an_error(
    node: _Node, tmp_path: Path, library: str, said: str
) -> None:
    """The loader alone would say so, ignore it and run the program."""
    argv = [str(local_tool("bw-traffic")), *WITNESS]
    with pytest.raises(BenchError, match=f"(?s)here: bw-traffic cannot be started .*{said}"):
        start_program(node, argv, tmp_path / "witness", preload=[LIBRARY, library])
    assert node.started == []


@pytest.mark.parametrize("library", ["libbwtime.so", "./libbwtime.so", "/tmp/a:b.so", "/tmp/a b.so", ""])
def test_a_path_that_the_loader_would_take_for_another_is_refused(
    node: _Node, tmp_path: Path, library: str
) -> None:
    with pytest.raises(ConfigError, match=r"here: .*: must be an absolute path without colon or space"):
        start_program(node, ["/bin/true"], tmp_path / "true", preload=[library])


def test_a_library_in_the_environment_is_refused(node: _Node, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="/bin/true: LD_PRELOAD in its environment"):
        start_program(node, ["/bin/true"], tmp_path / "true", {"LD_PRELOAD": LIBRARY})


def test_a_program_that_is_missing_is_named(node: _Node, tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"here: nothing cannot be started .*: No such file"):
        start_program(node, ["/bin/nothing"], tmp_path / "nothing", preload=[LIBRARY])


def test_a_program_that_runs_without_its_library_is_never_ready(tmp_path: Path) -> None:
    argv = [str(local_tool("bw-traffic")), *WITNESS]
    job = start_program(_ForgetfulNode(), argv, tmp_path / "witness", preload=[LIBRARY])
    try:
        with pytest.raises(BenchError, match=r"bw-traffic on here: runs without .*libbwtime\.so"):
            job.wait_ready(HANG_S)
    finally:
        job.stop()
        with pytest.raises(BenchError, match=r"nobody has seen .*libbwtime\.so in it"):
            job.wait(HANG_S)


def test_a_program_that_ends_too_soon_proves_nothing(node: _Node, tmp_path: Path) -> None:
    argv = [str(local_tool("bw-traffic")), *WITNESS, "--duration-ms", "1"]
    job = start_program(node, argv, tmp_path / "witness", preload=[LIBRARY])
    cast("Any", job)._job._process.wait(HANG_S)
    with pytest.raises(BenchError, match="bw-traffic on here: ended before it could be seen"):
        job.wait_ready(HANG_S)


@pytest.mark.parametrize("kind", [LocalNode, OwnedNode])
def test_what_a_user_loads_into_every_program_is_not_loaded_into_tools(
    kind: type[LocalNode], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would get between the tools and what is measured; a stack's own libraries stay."""
    monkeypatch.setenv("LD_PRELOAD", LIBRARY)
    job = kind("here", "host", 0).start(["env"], tmp_path / "env")
    assert job.wait(HANG_S) == 0
    assert "LD_PRELOAD" not in job.fetch().read_text()
    job = start_program(
        kind("here", "host", 0),
        [str(local_tool("bw-traffic")), *WITNESS],
        tmp_path / "witness",
        {},
        [LIBRARY],
    )
    job.wait_ready(HANG_S)
    job.stop()
    assert job.wait(HANG_S) == 0
