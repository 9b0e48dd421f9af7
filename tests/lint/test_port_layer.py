# SPDX-License-Identifier: Apache-2.0
"""A call of an operating system outside the port layer must be found, whatever the text looks like."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path, PurePosixPath

import pytest

from tests.lint.port_layer import (
    FUNCTIONS_FILE,
    allowed_functions,
    read_objects,
    wrong_includes,
    wrong_symbols,
)
from tests.lint.sources import check

FUNCTIONS = allowed_functions(FUNCTIONS_FILE.read_text())
PLAIN = """#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
int plain(const char *text, char *out) {
    errno = 0;
    printf("%s", text);
    fprintf(stderr, "%d %s", errno, strerror(errno));
    snprintf(out, 9, "%.3f", floor(strtod(text, NULL)));
    return (int)strlen(text) + sscanf(text, "%d", &errno);
}
"""
# No header names it: only the symbol does.
SLEEPS = "int usleep(unsigned int us); int nap(void) { return usleep(1); }\n"
STATED = """/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bw-nap - sleep
 *
 * System program: usleep(3) alone.
 */
"""


def compile_all(root: Path, files: dict[str, str], compiler: str = "gcc") -> list[tuple[str, str]]:
    """Write and compile files of a tree; return what the check finds, as source and symbol."""
    build = root / ".build"
    build.mkdir()
    commands: list[dict[str, str]] = []
    for number, (name, text) in enumerate(files.items()):
        source = root / name
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(text)
        argv = [compiler, "-O2", "-D_FILE_OFFSET_BITS=64", "-c", "-o", f"{number}.o", str(source)]
        subprocess.run(argv, cwd=build, check=True)
        file, output = f"../{name}", f"{number}.o"
        commands.append({"directory": str(build), "command": " ".join(argv), "file": file, "output": output})
    (build / "compile_commands.json").write_text(json.dumps(commands))
    return [
        (str(source), symbol) for source, symbol in wrong_symbols(read_objects(build, root), FUNCTIONS, root)
    ]


@pytest.mark.parametrize(
    "name",
    ["traffic-gen/a.c", "traffic-gen/clock/a.c", "targets/kind/src/a.c", "targets/kind/timeservice/a.c"],
)
def test_finds_a_call_that_no_header_shows(tmp_path: Path, name: str) -> None:
    assert compile_all(tmp_path, {name: SLEEPS}) == [(name, "usleep")]


def test_finds_calls_that_are_c99_but_ask_the_system(tmp_path: Path) -> None:
    text = "#include <stdlib.h>\n#include <time.h>\nlong f(void) { return system(0) + (long)time(0); }\n"
    found = compile_all(tmp_path, {"traffic-gen/a.c": text})
    assert found == [("traffic-gen/a.c", "system"), ("traffic-gen/a.c", "time")]


def test_finds_calls_of_windows(tmp_path: Path) -> None:
    if shutil.which("x86_64-w64-mingw32-gcc") is None:
        pytest.skip("no mingw-w64")
    text = "#include <windows.h>\nvoid f(void) { Sleep(1); }\n"
    found = compile_all(
        tmp_path, {"traffic-gen/a.c": text, "traffic-gen/b.c": PLAIN}, "x86_64-w64-mingw32-gcc"
    )
    assert found == [("traffic-gen/a.c", "__imp_Sleep")]


def test_accepts_c99_and_own_functions(tmp_path: Path) -> None:
    uses = "int own(void); int f(void) { return own(); }\n"
    files = {
        "traffic-gen/a.c": PLAIN,
        "traffic-gen/b.c": uses,
        "traffic-gen/port_x.c": "int own(void) { return 1; }\n",
    }
    assert compile_all(tmp_path, files) == []


@pytest.mark.parametrize(
    "name",
    [
        "traffic-gen/port/linux/port_linux_net.c",
        "targets/kind/src/port_time.c",
        "targets/kind/timeservice/port_service.c",
        "traffic-gen/clock/a_plugin.c",
        "tests/a.c",
    ],
)
def test_accepts_calls_of_the_port_layer(tmp_path: Path, name: str) -> None:
    assert compile_all(tmp_path, {name: SLEEPS}) == []


def test_a_function_that_only_a_test_defines_is_not_own(tmp_path: Path) -> None:
    files = {"traffic-gen/a.c": SLEEPS, "tests/a.c": "int usleep(unsigned int us) { return (int)us; }\n"}
    assert compile_all(tmp_path, files) == [("traffic-gen/a.c", "usleep")]


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("targets/kind/src/bw-nap.c", STATED + SLEEPS, False),
        ("targets/kind/src/bw-nap.c", SLEEPS, True),
        ("targets/kind/src/bw-nap.c", STATED.replace(": usleep(3) alone.", ":") + SLEEPS, True),
        ("targets/kind/src/nap.c", STATED + SLEEPS, True),
        ("targets/kind/timeservice/bw-nap.c", STATED + SLEEPS, True),
        ("traffic-gen/bw-nap.c", STATED + SLEEPS, True),
    ],
)
def test_only_a_targets_own_program_may_and_only_if_it_says_so(
    tmp_path: Path, name: str, text: str, found: bool
) -> None:
    assert bool(compile_all(tmp_path, {name: text})) == found


@pytest.mark.parametrize(
    "include",
    [
        "<windows.h>",
        "<winsock2.h>",
        "<sys/socket.h>",
        "<unistd.h>",
        "<pthread.h>",
        "<sched.h>",
        "<time.h>",
        "<signal.h>",
        "<linux/ptp_clock.h>",
        "<poll.h>",
        '"port_linux_device.h"',
    ],
)
def test_finds_headers_of_a_system(tmp_path: Path, include: str) -> None:
    text = f"/* SPDX-License-Identifier: Apache-2.0 */\n#include {include}\n"
    checked = ("traffic-gen/a.c", "traffic-gen/a.h", "targets/kind/src/a.c", "targets/kind/timeservice/a.h")
    for name in checked:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        assert [finding.line for finding in check(tmp_path, [PurePosixPath(name)])] == [2]
        port = PurePosixPath(name).with_name("port_linux_a.c")
        assert list(wrong_includes(port, text.splitlines())) == []


def test_leaves_other_headers_alone() -> None:
    lines = ["#include <stdint.h>", '#include "port.h"', "# include <math.h>", '#include "json.h"']
    assert list(wrong_includes(PurePosixPath("traffic-gen/a.c"), lines)) == []
    assert list(wrong_includes(PurePosixPath("tests/a.c"), ["#include <unistd.h>"])) == []


def test_a_build_that_is_not_there_is_no_pass(tmp_path: Path) -> None:
    (tmp_path / "compile_commands.json").write_text(
        json.dumps([{"directory": str(tmp_path), "command": "gcc a.c", "file": "a.c", "output": "a.o"}])
    )
    with pytest.raises(FileNotFoundError, match="build first"):
        read_objects(tmp_path, tmp_path)
