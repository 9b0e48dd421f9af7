# SPDX-License-Identifier: Apache-2.0
"""Each rule of source text must find its breach and nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path, PurePosixPath

import pytest

from tests.lint.sources import SPDX_LINE, Finding, check, source_paths

SPDX = f"# {SPDX_LINE}\n"


def findings_of(folder: Path, name: str, text: str) -> list[Finding]:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return check(folder, [PurePosixPath(name)])


def test_accepts_a_licensed_file(tmp_path: Path) -> None:
    assert findings_of(tmp_path, "a.py", SPDX + "x = 1\n") == []


def test_finds_a_missing_licence(tmp_path: Path) -> None:
    assert [finding.line for finding in findings_of(tmp_path, "a.py", "x = 1\n")] == [1]


def test_finds_a_licence_that_comes_too_late(tmp_path: Path) -> None:
    assert len(findings_of(tmp_path, "a.sh", "\n\n\n" + SPDX)) == 1


@pytest.mark.parametrize("name", ["a.json", "LICENSE", "tests/fuzz/corpus/one.toml"])
def test_asks_no_licence_of_formats_without_comments(tmp_path: Path, name: str) -> None:
    assert findings_of(tmp_path, name, "1\n") == []


@pytest.mark.parametrize("seconds", ["0.6", "1.", "4"])
@pytest.mark.parametrize(
    "call",
    ["job.wait(%s)", "link.settimeout(%s)", "open(timeout_s=%s)", "run(x, timeout=%s)", "thread.join(%s)"],
)
def test_finds_a_short_time_out_of_a_test(tmp_path: Path, call: str, seconds: str) -> None:
    text = f"{SPDX}x = 1\n{call % seconds}\n"
    assert [finding.line for finding in findings_of(tmp_path, "tests/hw/test_a.py", text)] == [3]
    assert findings_of(tmp_path, "bench/lab/report.py", text) == []
    assert findings_of(tmp_path, "hw/a.py", text) == []


@pytest.mark.parametrize(
    "call",
    ["job.wait(HANG_S)", "job.wait(5)", "job.wait(1.0)  # nothing has to come", "run(timeout=20)", "wait(1)"],
)
def test_leaves_patient_and_explained_time_outs_alone(tmp_path: Path, call: str) -> None:
    assert findings_of(tmp_path, "tests/hw/test_a.py", f"{SPDX}{call}\n") == []


@pytest.mark.parametrize(
    "condition", ["#ifdef _WIN32", "# if defined(__linux__)", "#elif defined(__MINGW32__)"]
)
def test_finds_an_os_condition_outside_the_port_layer(tmp_path: Path, condition: str) -> None:
    text = f"/* {SPDX_LINE} */\n{condition}\n#endif\n"
    assert [finding.line for finding in findings_of(tmp_path, "traffic-gen/traffic/send/send.c", text)] == [2]
    assert findings_of(tmp_path, "traffic-gen/port/port.h", text) == []
    assert findings_of(tmp_path, "traffic-gen/port/windows/port_win32.c", text) == []


def test_leaves_other_conditions_alone(tmp_path: Path) -> None:
    text = f"/* {SPDX_LINE} */\n#ifndef BW_SEND_H\n#define BW_SEND_H\n#endif\n"
    assert findings_of(tmp_path, "traffic-gen/send.h", text) == []


@pytest.mark.parametrize(
    "code",
    [
        "int64_t now_ns = port_tai_now_ns(tai);",
        "int64_t left_ns, deadline_ns;",
        "int64_t *next_ns;",
        "volatile int64_t until_ns[4];",
        "void wait(int64_t begin_ns, int64_t period_ns);",
        "link->retry_at_ns = 0; /* never */",
        "int64_t last_time_ns;",
    ],
)
def test_finds_an_instant_without_its_scale(tmp_path: Path, code: str) -> None:
    text = f"/* {SPDX_LINE} */\n/*\n * Two lines.\n */\n{code}\n"
    assert [finding.line for finding in findings_of(tmp_path, "traffic-gen/send.c", text)] == [5]
    assert findings_of(tmp_path, "hw/send.py", SPDX + "now_ns = 1\n") == []


def test_leaves_scales_durations_text_and_clocks_by_argument_alone(tmp_path: Path) -> None:
    code = (
        f"/* {SPDX_LINE} */\n"
        "int64_t now_tai_ns, end_monotonic_ns, timeout_ns, offset_ns;\n"
        'json_int(json, "start_ns", start_phc_ns); /* the key is "start_ns",\n * not now_ns */\n'
        "int64_t port_clock_now_ns(enum port_clock clock);\n"
    )
    assert findings_of(tmp_path, "traffic-gen/send.c", code) == []
    sleep = f"/* {SPDX_LINE} */\nint port_clock_sleep_until_ns(enum port_clock clock, int64_t deadline_ns);\n"
    assert findings_of(tmp_path, "traffic-gen/port/port.h", sleep) == []
    assert [finding.line for finding in findings_of(tmp_path, "traffic-gen/port/port_wait.h", sleep)] == [2]


@pytest.mark.parametrize(
    "text",
    [
        "/" + "home/alice/bench",
        "cd /" + "work/tree",
        "https://pypi." + "org/simple",
        "http://deb.debian." + "org/debian",
    ],
)
def test_finds_text_of_one_machine(tmp_path: Path, text: str) -> None:
    assert [finding.line for finding in findings_of(tmp_path, "a.md", SPDX + text + "\n")] == [2]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("docs/a.md", "U is kept " + "clear of the limit"),
        ("reports/a.html.j2", "Asked and not " + "measured"),
        ("hw/a.py", "print('m" + "end the bench')"),
        ("traffic-gen/a.c", 'fputs("the machine stood ' + 'still", out);'),
        ("dashboards/a.js", "'the grave" + "st first'"),
    ],
)
def test_finds_a_word_that_is_none_of_the_field_s(tmp_path: Path, name: str, text: str) -> None:
    lines = f"# {SPDX_LINE}\nrecommended, amend, commendable, standing, engraved\n{text}\n"
    assert [finding.line for finding in findings_of(tmp_path, name, lines)] == [3]


@pytest.mark.parametrize("text", ["$HOME/.cache", "~/work/notes", "tests/home/alice", "framework/x"])
def test_leaves_relative_text_alone(tmp_path: Path, text: str) -> None:
    assert findings_of(tmp_path, "a.md", SPDX + text + "\n") == []


def test_skips_binaries(tmp_path: Path) -> None:
    (tmp_path / "a.dat").write_bytes(b"\0\1\2")
    assert check(tmp_path, [PurePosixPath("a.dat")]) == []


def test_lists_new_files_but_not_ignored_ones(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("/out/\n")
    (tmp_path / "new.py").write_text("")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "made.py").write_text("")
    assert source_paths(tmp_path) == [PurePosixPath(".gitignore"), PurePosixPath("new.py")]
