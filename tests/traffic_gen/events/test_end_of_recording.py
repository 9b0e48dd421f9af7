# SPDX-License-Identifier: Apache-2.0
"""A program that starts while its recording ends: it is in it, or it knows that there is none any more."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from reports.timeline.event_stream_file import read_event_streams
from tests.patience import HANG_S, wait_until

LINK_HELD = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

/* The name is given once the test lets it go on. */
int link(const char *from, const char *to)
{
	int (*real)(const char *, const char *) = (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "link");
	char byte;
	int gate = open(HELD_AT, O_RDONLY);

	if (gate < 0 || read(gate, &byte, 1) != 1)
		_exit(99);
	return real(from, to);
}
"""


def _full_pipe() -> tuple[int, int, int]:
    """Return a pipe that takes no more, and how many bytes are in it."""
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    filled = 0
    try:
        while True:
            filled += os.write(writes, bytes(4096))
    except BlockingIOError:
        os.set_blocking(writes, True)
    return reads, writes, filled


@pytest.mark.parametrize("held", [False, True], ids=["begins after the end", "is about to be found"])
def test_a_program_that_comes_too_late_records_nothing(
    tool: str, probe: str, tmp_path: Path, events_memory: Path, *, held: bool
) -> None:
    """The recorder has looked for the last time and cannot say what it found: its folder is still there."""
    gate, preload = tmp_path / "gate", tmp_path / "held.so"
    os.mkfifo(gate)
    source = f'#define HELD_AT "{gate}"\n{LINK_HELD}'
    compiler = ["gcc", "-shared", "-fPIC", "-o", str(preload), "-x", "c", "-", "-ldl"]
    subprocess.run(compiler, input=source, text=True, check=True)
    output = tmp_path / "output"
    reads, writes, filled = _full_pipe()
    command = [tool, "record", "--output", str(output)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=writes, text=True) as process:
        os.close(writes)
        assert process.stdout
        name, _, folder = process.stdout.readline().strip().partition("=")

        def started() -> subprocess.Popen[bytes]:
            environment = {**os.environ, name: folder} | ({"LD_PRELOAD": str(preload)} if held else {})
            return subprocess.Popen([probe, "count", "5"], env=environment, stdout=subprocess.DEVNULL)

        early = started() if held else None
        opened = os.open(gate, os.O_WRONLY) if held else -1  # returns when the program is at its link
        process.terminate()
        waits = Path(f"/proc/{process.pid}/wchan")
        wait_until(lambda: "pipe_write" in waits.read_text(), "the recorder waits to say what it has")
        with early or started() as program:
            if held:
                os.write(opened, b"1")
            assert program.wait(HANG_S) == 0
        left = [each.name for each in events_memory.glob("*/*.rings")]
        said = b""
        while chunk := os.read(reads, 65536):
            said += chunk
        process.wait(HANG_S)
    for each in (reads, opened):
        if each >= 0:
            os.close(each)
    assert not left
    assert b"0 programs, 0 slots of 32 bytes, 0 events lost" in said[filled:]
    assert process.returncode == 4
    assert not read_event_streams(output)
