# SPDX-License-Identifier: Apache-2.0
"""`python -m reports clock-log`: a log that somebody brings, read without a run folder."""

from __future__ import annotations

import gzip
import json
import random
import re
from pathlib import Path

import pytest

from reports.__main__ import main
from reports.clock_sync import log_command
from reports.clock_sync.linuxptp_logs import read_ptp4l
from reports.clock_sync.log_formats import LOG_MARKS, LOG_READERS
from reports.clock_sync.transports import decoded
from reports.clock_sync.unread_forms import UNREAD_FORMS
from tests.reports.clock_sync.test_logs import GOLDEN, PHC2SYS, poll


@pytest.mark.parametrize(
    "name", [path.name for path in sorted(GOLDEN.glob("*.log")) if "rms" not in path.name]
)
def test_format_is_recognised_and_offsets_are_told(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["clock-log", str(GOLDEN / name)]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{GOLDEN / name}: {name.removesuffix('.log')}\n")
    assert "offsets in" in said
    assert "max|TE|" in said


def test_summary_lines_alone_are_no_offsets(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["clock-log", str(GOLDEN / "ptp4l-rms.log")]) == 1
    assert "27 summary lines, which have no sign" in capsys.readouterr().out


def test_what_cannot_be_read_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "syslog"
    log.write_text(
        f"Nov  1 18:05:54 box sshd[71]: Accepted\n{PHC2SYS}phc2sys[105.250]: CLOCK_REALTIME phc off\n"
    )
    assert main(["clock-log", str(log), "--format", "phc2sys"]) == 0
    assert "1 of other programs; 1 summary lines" in capsys.readouterr().out
    log.write_text("words\n")
    assert main(["clock-log", str(log)]) == 1
    said = capsys.readouterr().out
    assert f"{log}: no offset in it" in said
    assert [line.strip() for line in said.splitlines()[1:]] == [
        f"{name}: none of 1 lines bears its mark" for name in LOG_READERS
    ]
    assert main(["clock-log", str(tmp_path / "none")]) == 2
    assert "No such file" in capsys.readouterr().err


def test_bytes_that_are_no_text_are_damaged_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "core"
    log.write_bytes(bytes(range(256)) * 40)
    assert main(["clock-log", str(log)]) == 1
    assert "damaged" in capsys.readouterr().out


def said_of(log: Path, text: str | bytes, capsys: pytest.CaptureFixture[str], code: int = 0) -> str:
    log.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert main(["clock-log", str(log)]) == code
    return capsys.readouterr().out


def servo_line(at_s: int, offset_ns: int, state: str) -> str:
    return f"phc2sys[{at_s}.000]: CLOCK_REALTIME phc offset {offset_ns} {state} freq -3563 delay 519\n"


def test_what_a_servo_does_before_it_is_locked_is_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unlocked = servo_line(0, -513283, "s0") + servo_line(1, -513297, "s1")
    locked = "".join(servo_line(2 + n, offset, "s2") for n, offset in enumerate([-48, -3, -20, -22]))
    said = said_of(tmp_path / "log", unlocked + locked, capsys)
    assert "CLOCK_REALTIME phc: 6 offsets in 5 s" in said
    assert "locked, 4 of them:\n      offset −48 ns to −3 ns, mean −23.2 ns" in said  # noqa: RUF001
    assert "max|TE| 48 ns" in said
    assert "not locked, 2 of them: offset −513.3 µs to −513.3 µs" in said  # noqa: RUF001
    assert "never locked: offset" in said_of(tmp_path / "log", unlocked, capsys)


def test_another_programs_offsets_in_the_same_log_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = servo_line(0, 5, "s2") + servo_line(1, 7, "s2")
    other = "ptp4l[3.100]: [ptp4l.0.config:6] master offset -2 s2 freq -3980 path delay 89\n"
    said = said_of(
        tmp_path / "log", own + "I0106 10:21:00.000001 1 event.go:310] clock class 6\n" + other, capsys
    )
    assert "2 offsets in 1 s" in said
    assert "lines left out: 2 of other programs" in said
    assert "also in it, --format ptp4l: 1 offsets" in said


CHART = "10:00:00, +00.0012345s\r\n10:00:02, -00.0002345s\r\n"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "utf-8"])
def test_a_byte_order_mark_is_no_content(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], encoding: str
) -> None:
    """PowerShell writes UTF-16 with its mark."""
    said = said_of(tmp_path / "log", CHART.encode(encoding), capsys)
    assert ": w32tm\n  server: 2 offsets in 2 s" in said
    assert "left out" not in said


@pytest.mark.parametrize(
    ("form", "text", "offset"),
    [
        ("ntpd-loopstats", "50935 75440.031 0.000006019 13.778190 0.000351733 0.013380 6\n", "−6.019 µs"),  # noqa: RUF001
        (
            "ntpd-peerstats",
            "48773 10847.650 127.127.4.1 9714 -0.001605376 0.000000000 0.001424877 0.000958674\n",
            "1.605 ms",
        ),
        (
            "pmc",
            (
                "sending: GET TIME_STATUS_NP\n"
                "\t40a36b.fffe.123456-0 seq 0 RESPONSE MANAGEMENT TIME_STATUS_NP\n"
                "\t\tmaster_offset              -6\n"
                "\t\tingress_time               1604567890123456789\n"
                "\t\tgmPresent                  true\n"
            ),
            "−6 ns",  # noqa: RUF001
        ),
    ],
)
def test_forms_of_other_programs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str, text: str, offset: str
) -> None:
    said = said_of(tmp_path / "log", text, capsys)
    assert f"log: {form}\n" in said
    assert "1 offsets in 0 s" in said
    assert f"offset {offset} to {offset}" in said
    assert "damaged" not in said


PLAIN = "".join(f"ptp4l[{n}.125]: master offset {n} s2 freq +1203 path delay 990\n" for n in range(3))


def in_json(**fields: object) -> str:
    """Return the plain lines as objects with these fields; `{0}` in them is the line, `{1}` its message."""
    return "".join(
        json.dumps({key: _filled(value, line) for key, value in fields.items()}) + "\n"
        for line in PLAIN.splitlines()
    )


def _filled(value: object, line: str) -> object:
    message = line.removeprefix("ptp4l").replace("]:", "]")
    if value is bytes:
        return list(f"\x1b[32m{message}\x1b[0m".encode())
    return value.format(line, message) if isinstance(value, str) else value


def _of_kubernetes(text: str, parts: int = 1) -> str:
    """Return lines as a node keeps them of a container, each in so many parts."""
    said: list[str] = []
    for line in text.splitlines():
        length = -(-len(line) // parts)
        cut = [line[at : at + length] for at in range(0, len(line), length)]
        said += [f"{CRI_TIME} stdout {'F' if part is cut[-1] else 'P'} {part}\n" for part in cut]
    return "".join(said)


CRI_TIME = "2026-10-03T08:00:00.125456789Z"

WRAPPED: dict[str, bytes] = {
    "kubernetes": _of_kubernetes(PLAIN).encode(),
    "kubernetes in parts": _of_kubernetes(PLAIN, 3).encode(),
    "kubernetes of docker's JSON": _of_kubernetes(in_json(MESSAGE=bytes, _COMM="ptp4l", _PID="8")).encode(),
    "kubectl with times": PLAIN.replace("ptp4l[", f"{CRI_TIME} ptp4l[").encode(),
    "kubectl with pods": PLAIN.replace("ptp4l[", "[pod/ptp-7f/daemon] ptp4l[").encode(),
    "docker": in_json(log="{0}\n", stream="stdout", time="2026-10-03T08:00:00.125Z").encode(),
    "journal": in_json(SYSLOG_IDENTIFIER="ptp4l", _PID="812", _HOSTNAME="bench", MESSAGE="{1}").encode(),
    "journal with colours": in_json(MESSAGE=bytes, _COMM="ptp4l", _PID="812").encode(),
    "compose": PLAIN.replace("ptp4l[", "\x1b[36mptp4l-1    | \x1b[0mptp4l[").encode(),
    "gzip": gzip.compress(PLAIN.encode(), mtime=0),
    "gzip of docker": gzip.compress(in_json(log="{0}\n", stream="stderr", time="").encode(), mtime=0),
}


@pytest.mark.parametrize("what", WRAPPED)
def test_what_other_programs_wrap_around_lines_is_taken_off(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    said = said_of(tmp_path / "log", WRAPPED[what], capsys)
    assert ": ptp4l\n  master: 3 offsets in 2 s" in said
    assert "offset 0 ns to 2 ns" in said
    assert "left out" not in said


def test_a_container_before_lines_that_name_no_host_is_taken_off(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tracking = (GOLDEN / "chrony-tracking.log").read_text()
    for text in (tracking, poll() + poll(offset_ns=7)):
        plain = said_of(tmp_path / "log", text, capsys)
        wrapped = "".join(f"time-1  | {line}\n" for line in text.splitlines())
        assert said_of(tmp_path / "log", wrapped, capsys) == plain
        assert "left out" not in plain
    (tmp_path / "log").write_text(wrapped + wrapped.replace("time-1", "time-2"))
    assert main(["clock-log", str(tmp_path / "log")]) == 2
    assert "lines of several containers (time-1, time-2)" in capsys.readouterr().err


def test_lines_of_clients_in_json_are_not_taken_for_wrapped_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = said_of(
        tmp_path / "log", poll(log="x") + poll(MESSAGE="x", offset_ns=7).replace("MESSAGE", "m"), capsys
    )
    assert ": bw-ntp-user\n  server: 2 offsets" in said


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (WRAPPED["gzip"][:-9], "a gzip file that is damaged"),
        (WRAPPED["gzip"][:20] + b"\xff" * 20, "a gzip file that is damaged"),
        (b"\xfd7zXZ\x00\x00", "an xz file: unpack it first"),
        (b"LPKSHHRH", "a file of systemd's journal: read it with journalctl"),
    ],
)
def test_a_file_that_cannot_be_unpacked_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes, why: str
) -> None:
    log = tmp_path / "log"
    log.write_bytes(data)
    assert main(["clock-log", str(log)]) == 2
    assert f"{log}: {why}" in capsys.readouterr().err


def test_the_chart_of_newer_windows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chart = "09:08:1{0}, d:+00.0140831s o:-00.011194{0}s  [        *   |          ]\r\n"
    said = said_of(tmp_path / "log", "".join(chart.format(n) for n in range(3)), capsys)
    assert ": w32tm\n  server: 3 offsets in 2 s" in said
    assert "offset 11.19 ms to 11.19 ms" in said


UNREAD = {
    "chrony's refclocks.log": "2026-10-03 14:33:27.000000 PPS2    7 N 1  4.900e-07 -6.741777e-07  1.000e-06",
    "an answer of chronyc": "Reference ID    : C0000210 (192.0.2.16)\nStratum         : 3",
    "an answer of ntpq": "associd=0 status=0615 leap_none, sync_ntp, 1 event, clock_sync,\noffset=0.0123",
    "a log of ptpd": (
        "# Timestamp, State, Clock ID, One Way Delay, Offset From Master, Slave to Master\n"
        "2026-10-03 17:02:17.415086, slv, 0011220000334455(unknown)/1, 0.000012, -0.000000045"
    ),
    "a log of the 802.1AS daemon of OpenAvnu": "INFO     : GPTP [13:01:14:837] gPTP starting",
    "a White Rabbit log": "SERVO sv:1 ss:'TRACK_PHASE' mu:838111 dms:423079 crtt:612281 cko:2 setp:7073",
}


@pytest.mark.parametrize("what", UNREAD_FORMS)
def test_a_form_that_is_not_read_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    said = said_of(tmp_path / "log", f"words\n{UNREAD[what]}\n", capsys, 1)
    assert said == f"{tmp_path / 'log'}: {what}: not read; {UNREAD_FORMS[what][1]}\n"


@pytest.mark.parametrize("name", LOG_READERS)
def test_each_line_of_use_to_a_format_has_its_mark(name: str) -> None:
    """A reader whose mark is in no line is not asked: what it would find must be nothing."""
    lines = [line for path in GOLDEN.glob("*.log") for line in path.read_text().splitlines()]
    lines += [*PHC2SYS.splitlines(), *PLAIN.replace("ptp4l", "").replace("]:", "]").splitlines()]
    lines += [*CHART.splitlines(), poll().strip(), *(text for text in UNREAD.values() if "\n" not in text)]
    marked = [any(re.search(mark, line) for mark in LOG_MARKS[name]) for line in lines]
    for line, has_mark in zip(lines, marked, strict=True):
        found = LOG_READERS[name](f"{line}\n", 37)
        assert has_mark or not (found.series or found.summaries or found.port_changes), line
    assert not all(marked)


def test_of_a_large_log_is_told_what_it_is_read_as(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_command, "LARGE_LINES", 3)
    log = tmp_path / "log"
    log.write_text(PLAIN)
    assert main(["clock-log", str(log)]) == 0
    assert capsys.readouterr().err == f"{log}: reading 4 lines as ptp4l ...\n"


def test_random_cuts_and_merges_lose_no_line_uncounted() -> None:
    """200 of them: each line is counted once, and no line is damaged that was not cut."""
    rng = random.Random(36)
    names = ["ptp4l.log", "chrony-measurements.log", "chrony-statistics.log", "chrony-tracking.log"]
    logs = {name: (GOLDEN / name).read_text().splitlines() for name in names}
    for _ in range(200):
        lines: list[str] = []
        cut = 0
        for name in rng.choices(names, k=3):
            first = rng.randrange(len(logs[name]))
            part = logs[name][first : first + rng.randrange(1, 40)]
            if rng.random() < 0.5:
                part[-1] = part[-1][: rng.randrange(1, len(part[-1]))]
                cut += 1
            lines += part
        text = "\n".join(lines).encode(rng.choice(["utf-8", "utf-8-sig", "utf-16"]))
        found = read_ptp4l(decoded(text) + "\n")
        held = sum(len(series.time_ns) for series in found.series) + len(found.port_changes)
        counted = held + len(found.summaries) + found.damaged + found.foreign + found.other
        assert counted == sum(bool(line.strip()) for line in lines)
        assert found.damaged <= cut
