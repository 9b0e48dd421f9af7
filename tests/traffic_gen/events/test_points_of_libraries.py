# SPDX-License-Identifier: Apache-2.0
"""Names that fit no point of a program itself: those of a library, of a child, and of nobody."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from reports.timeline.event_stream_file import read_event_streams
from tests.patience import HANG_S

LIBRARY = """
#include <bwevents.h>
BW_EVENT_POINT(it, "library", "only", "");
void library(void);
void library(void) { for (int i = 0; i < 5; i++) BW_EVENT(it, i); }
"""

PROGRAM = """
#include <bwevents.h>
#include <unistd.h>
BW_EVENT_POINT(it, "program", "only", "");
void library(void);
int main(int argc, char **argv)
{
	BW_EVENT(it, 1);
	library();
	return argc > 1 ? execv(argv[1], argv + 1) : 0;
}
"""


@pytest.fixture
def program(repository: Path, tmp_path: Path) -> str:
    """Build a program with a point and a library with another one; it ends as what it is given."""
    own = ["-Wl,--whole-archive", str(repository / ".build/linux/traffic-gen/events/libbwevents.a")]
    own += ["-Wl,--no-whole-archive"]
    library, path = str(tmp_path / "library.so"), str(tmp_path / "program")
    for source, options in ((LIBRARY, ["-shared", "-fPIC", "-o", library]), (PROGRAM, ["-o", path])):
        more = [library] if source is PROGRAM else []
        compiler = ["gcc", *options, f"-I{repository / 'traffic-gen/events'}", "-x", "c", "-", "-x", "none"]
        subprocess.run([*compiler, *own, *more, "-pthread"], input=source, text=True, check=True)
    return path


@pytest.mark.parametrize("group", ["program", "library", "probe"])
def test_each_group_is_found_where_it_is(
    tool: str, probe: str, program: str, tmp_path: Path, group: str
) -> None:
    output = tmp_path / "output"
    command = [tool, "record", "--output", str(output), "--points", group, "--", program]
    done = subprocess.run(
        [*command, probe, "count", "5"], capture_output=True, text=True, check=False, timeout=HANG_S
    )
    assert done.returncode == 0, done.stderr
    assert ("itself has 1 points, none of these names" in done.stderr) is (group != "program")
    assert "had a point of these names" not in done.stderr
    tags = [stream.tag.tolist() for stream in read_event_streams(output) if stream.tag.size]
    assert tags == [[1] if group == "program" else list(range(5))]


def test_names_that_nobody_has_are_said_by_stream(tool: str, probe: str, tmp_path: Path) -> None:
    streams = tmp_path / "streams.toml"
    streams.write_text(
        '[[stream]]\nname = "good"\npoints = "probe"\n[[stream]]\nname = "typo"\npoints = "prob"\n'
    )
    command = [tool, "record", "--output", str(tmp_path / "output"), "--streams", str(streams)]
    done = subprocess.run(
        [*command, "--", probe, "count", "5"], capture_output=True, text=True, check=False, timeout=HANG_S
    )
    assert done.returncode == 4
    assert "stream typo: no program or library had a point of these names" in done.stderr
    assert "stream good:" not in done.stderr
