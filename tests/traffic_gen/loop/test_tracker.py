# SPDX-License-Identifier: Apache-2.0
"""The verbs tracker and display beside cameras, displays and programs that do not keep to what is agreed."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import HANG_S
from tests.traffic_gen.loop.cameras import (
    PATIENT,
    Truth,
    closed_loop,
    connect,
    header,
    picture,
    played_camera,
)
from tests.traffic_gen.two_ends import end, ended, free

CLOSED = "the connection was closed before the end of the pictures"
CONTRADICT = "the pictures' numbers contradict each other"
DAMAGED = "pictures were damaged"
STREAMS: list[tuple[bytes, list[str], int, str]] = [
    (picture(0) + picture(1) + header(2, is_end=True), [], 2, ""),
    (picture(0), [CLOSED], 1, ""),
    (b"", [CLOSED], 0, ""),
    (picture(0) + picture(1)[:-1], ["the last picture is cut off"], 1, ""),
    (picture(0) + picture(1)[:39], ["the last picture is cut off"], 1, ""),
    (picture(0) + bytes(40), ["what came is no picture"], 1, "does not begin as a picture does"),
    (picture(0) + picture(0) + header(2, is_end=True), [CONTRADICT], 1, "no higher number"),
    (picture(5) + picture(3) + header(6, is_end=True), [CONTRADICT], 1, "no higher number"),
    (picture(2**32 - 1) + picture(0) + header(1, is_end=True), [CONTRADICT], 1, "no higher number"),
    (picture(0) + picture(1) + header(1, is_end=True), [CONTRADICT], 2, "says fewer pictures than came"),
    (picture(7) + header(7, is_end=True), [CONTRADICT], 1, "says fewer pictures than came"),
    (picture(3) + picture(7) + header(8, is_end=True), [], 2, ""),  # a full queue
    (header(0, is_end=True), [], 0, ""),
    (
        picture(0)[:-1] + b"\1" + picture(0) + header(2, is_end=True),
        [CONTRADICT, DAMAGED],
        0,
        "no higher number",
    ),
    (picture(0)[:-1] + b"\1" + picture(1) + header(2, is_end=True), [DAMAGED], 1, ""),
]


@pytest.mark.parametrize(("stream", "reasons", "pictures", "said"), STREAMS)
def test_tracker_tells_what_is_wrong_with_a_stream(
    bw_loop: Path, stream: bytes, reasons: list[str], pictures: int, said: str
) -> None:
    with played_camera(bw_loop) as (process, sends, _):
        sends.sendall(stream)
        with contextlib.suppress(OSError):  # it may have gone already
            sends.shutdown(socket.SHUT_WR)
        code, result, errors = ended(process)
    assert (code, result["invalid_reasons"]) == (4 if reasons else 0, reasons)
    assert (result["pictures"], result["not_found"], result["commands"]) == (pictures, pictures, 0)
    assert said in errors


@pytest.mark.parametrize(("stream", "reasons", "pictures", "said"), STREAMS)
def test_display_tells_it_too(
    bw_loop: Path, stream: bytes, reasons: list[str], pictures: int, said: str
) -> None:
    with end(bw_loop, "display", "--listen", free(), *PATIENT) as (process, ready):
        with connect(ready["address"]) as peer:
            peer.sendall(stream)
        code, result, errors = ended(process)
    assert (code, result["invalid_reasons"]) == (4 if reasons else 0, reasons)
    assert result["pictures"] == pictures
    assert said in errors


def test_a_picture_of_another_size_is_counted(bw_loop: Path) -> None:
    with played_camera(bw_loop) as (process, sends, _):
        sends.sendall(picture(0) + picture(1, (64, 32)) + picture(2) + header(3, is_end=True))
        code, result, _ = ended(process)
    assert (code, result["invalid_reasons"]) == (4, ["pictures were damaged"])
    assert (result["pictures"], result["of"]) == (2, 3)
    assert result["damaged_by_reason"] == {"has another size than the first": 1}


def test_silence_and_stop_end_it(bw_loop: Path) -> None:
    with played_camera(bw_loop, "--timeout-ms", "50") as (process, _, _):
        code, result, _ = ended(process)
    assert (code, result["invalid_reasons"]) == (4, ["no picture came in time"])
    with played_camera(bw_loop) as (process, _, _):
        process.terminate()
        code, result, _ = ended(process)
    assert (code, result["invalid_reasons"]) == (4, ["stopped before its end"])


def test_a_camera_that_is_not_there_is_told(bw_loop: Path) -> None:
    words = ["--camera", free(), "--control", free(), "--timeout-ms", "50", "--priority", "0"]
    with end(bw_loop, "tracker", *words) as (process, _):
        code, result, said = ended(process)
    assert (code, result["invalid_reasons"]) == (4, ["the camera could not be reached"])
    assert "refused" in said


def test_a_display_that_is_not_there_holds_up_nothing(bw_loop: Path, tmp_path: Path) -> None:
    found = closed_loop(bw_loop, tmp_path / "truth", ("--pictures", "20"), ("--display", free()))
    code, result, _ = found["tracker"]
    assert (code, result["commands"]) == (0, result["found"])
    shown = result["display"]
    assert shown["forwarded"] == 0
    assert shown["discarded"] + shown["overrun"] == result["pictures"]


def test_a_display_that_reads_nothing_holds_up_no_command(bw_loop: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stuck:
        options = ("--pictures", "40", "--pictures-per-s", "20", "--size", "1024x768", "--queue", "40")
        shown = ("--display", f"127.0.0.1:{stuck.getsockname()[1]}", "--timeout-ms", "4000")
        found = closed_loop(bw_loop, tmp_path / "truth", options, shown)
    code, result, _ = found["tracker"]
    assert code == 0
    assert result["pictures"] == 40 == result["found"] == result["commands"]
    assert result["display"]["discarded"] + result["display"]["overrun"] > 0
    assert found["camera"][0] == 0


def test_the_box_is_drawn_round_the_target(bw_loop: Path, tmp_path: Path) -> None:
    """The display's pictures are the camera's but for the box's frame, which is round the disc."""
    pictures, commands, shown = free(), free(), free()
    serve = ["--serve", pictures, "--commands", commands, "--wait-for-client", "--pictures", "3"]
    with (
        end(bw_loop, "display", "--listen", shown, "--keep", tmp_path / "kept", *PATIENT) as (display, _),
        end(bw_loop, "camera", *serve, "--open-loop", "--truth", tmp_path / "truth", *PATIENT) as (camera, _),
        end(
            bw_loop, "tracker", "--camera", pictures, "--control", commands, "--display", shown, *PATIENT
        ) as (tracker, _),
    ):
        assert [ended(each)[0] for each in (tracker, camera, display)] == [0, 0, 0]
    truth = Truth(tmp_path / "truth")
    for kept in sorted(tmp_path.glob("kept/*")):
        made, seen = truth.rendered(bw_loop, int(kept.stem[-8:])), kept.read_bytes()
        start = len("P5\n320 240\n255\n")
        other = [at for at in range(76800) if made[start + at] != seen[start + at]]
        columns, rows = {at % 320 for at in other}, {at // 320 for at in other}
        assert (max(columns) - min(columns), max(rows) - min(rows)) == (36, 36)
        assert abs(min(columns) + 18 - 160) <= 8  # the camera looks at where the target started
        assert abs(min(rows) + 18 - 120) <= 8
        assert {seen[start + at] for at in other} == {255}


OWN = """
import struct, sys
stdin = sys.stdin.buffer
while len(head := stdin.read(40)) == 40 and not head[5]:
    width, height, number, x, y, zoom = struct.unpack(">HHIiiI", head[8:28])
    pixels = stdin.read(width * height)
    {line}
"""
LOOKS = 'print("look", number, x + 256, y, zoom, flush=True)'


def own(line: str, before: str = "") -> list[str]:
    """Return words of a program that does something with each picture."""
    return ["--program", sys.executable, "-c", before + OWN.format(line=line)]


def test_a_program_of_the_site_closes_the_loop(bw_loop: Path, tmp_path: Path) -> None:
    camera = ("--pictures", "25", "--path", "still", "--look", "900,700", "--queue", "64")
    found = closed_loop(bw_loop, tmp_path / "truth", camera, own(LOOKS), display=True)
    assert [(each[0], each[1]["invalid_reasons"]) for each in found.values()] == [(0, [])] * 3
    result = found["tracker"][1]
    assert (result["pictures"], result["commands"], result["program"]["given"]) == (25, 25, 25)
    assert found["camera"][1]["commands"]["obeyed"] == 25
    for each in Truth(tmp_path / "truth").commands.values():
        assert each["look"]["zoom_q8"] == 256


def test_a_program_may_answer_pictures_whose_numbers_have_gaps(bw_loop: Path) -> None:
    with played_camera(bw_loop, *own(LOOKS)) as (process, sends, reads):
        sends.sendall(picture(3) + picture(7) + header(8, is_end=True))
        code, result, _ = ended(process)
        said = reads.makefile().read()
    assert (code, result["commands"]) == (0, 2)
    assert said == "look 3 256 0 256\nlook 7 256 0 256\n"


@pytest.mark.parametrize("answered", [0, 5, 6])
def test_a_program_may_not_answer_a_picture_that_it_was_not_given(bw_loop: Path, answered: int) -> None:
    line = f'print("look", {answered} if number == 7 else 3, 256, 0, 256, flush=True)'
    with played_camera(bw_loop, *own(line)) as (process, sends, reads):
        sends.sendall(picture(3) + picture(7) + header(8, is_end=True))
        code, result, _ = ended(process)
        said = reads.makefile().read()
    assert (code, said) == (4, "look 3 256 0 256\n")
    reason = (
        "answers a picture that was not sent"
        if answered
        else "answers no later picture than the one before it"
    )
    assert result["program"]["refused_by_reason"] == {reason: 1}


def run_program(bw_loop: Path, script: str, count: int, timeout_ms: str) -> tuple[int, list[str]]:
    """Send pictures to a script of a shell until all are sent or the tracker has ended; return how it did."""
    words = ("--program-timeout-ms", timeout_ms, "--program", "sh", "-c", script)
    with played_camera(bw_loop, *words) as (process, sends, _):
        try:
            for number in range(count):
                sends.sendall(picture(number, (64, 64)))
            sends.sendall(header(count, (64, 64), is_end=True))
        except OSError:
            assert count == 100_000
        code, result, _ = ended(process)
    assert result["of"] == (count if count < 100_000 else 0)
    return code, result["invalid_reasons"]


@pytest.mark.parametrize(
    ("script", "timeout_ms", "reason"),
    [
        ("sleep 1000", "3000", "the program closed its stdin before the pictures ended"),
        ("sleep 0.5; exit 0", "60000", "the program ended before the pictures did, with exit code 0"),
    ],
)
def test_a_program_that_closes_its_stdin_is_told(
    bw_loop: Path, script: str, timeout_ms: str, reason: str
) -> None:
    closes = "head -c 4136 > /dev/null; exec <&-; " + script
    assert run_program(bw_loop, closes, 100_000, timeout_ms) == (4, [reason])


def test_a_program_that_closes_its_stdout_is_told(bw_loop: Path) -> None:
    """It takes all pictures. Where the tracker sees the end of both at once there is nothing to be told."""
    runs = (run_program(bw_loop, "exec >&-; cat > /dev/null", 200, "60000") for _ in range(6))
    found = next((each for each in runs if each[0]), None)
    assert found == (4, ["the program closed its stdout before the pictures ended"])
    reason = "the program ended with exit code 3"
    assert run_program(bw_loop, "exec >&-; cat > /dev/null; exit 3", 200, "60000") == (4, [reason])


def test_the_tracker_of_the_documentation_closes_the_loop(
    bw_loop: Path, repository: Path, tmp_path: Path
) -> None:
    page = (repository / "docs/control-loops.md").read_text()
    program = page.partition("$ cat own.py\n")[2].partition("\n$ ")[0]
    (tmp_path / "own.py").write_text(program)
    camera = ("--pictures", "20", "--path", "still", "--noise-q8", "0", "--queue", "64")
    found = closed_loop(
        bw_loop, tmp_path / "truth", camera, ("--program", sys.executable, str(tmp_path / "own.py"))
    )
    assert [each[0] for each in found.values()] == [0, 0]
    truth = Truth(tmp_path / "truth")
    [(x_q8, y_q8)] = truth.target(bw_loop, [0])
    assert len(truth.commands) == 20
    for each in truth.commands.values():
        assert abs(each["look"]["x_q8"] - x_q8) <= 13 * 256  # a point of the disc
        assert abs(each["look"]["y_q8"] - y_q8) <= 13 * 256


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (own("sys.exit(3)"), "the program ended before the pictures did, with exit code 3"),
        (own("import os; os.kill(os.getpid(), 9)"), "the program was ended by signal 9"),
        (own("import time; time.sleep(1000)"), "the program hangs: it took no picture in time"),
        (own('print("look 0 1 1 256\\n" * 1000, flush=True)'), "the program floods: it said more than 2048"),
        (own('print("hello", flush=True)'), "lines of the program were no commands"),
        (own('print("look 7000 1 1 256", flush=True)'), "lines of the program were no commands"),
        ([*own("pass")[:-1], OWN.format(line="pass") + "sys.exit(5)"], "the program ended with exit code 5"),
        (
            [*own("pass")[:-1], OWN.format(line="pass") + "import time; time.sleep(1000)"],
            "the program hangs: it did not end behind the last picture",
        ),
    ],
)
def test_a_program_that_fails_is_told(bw_loop: Path, tmp_path: Path, words: list[str], reason: str) -> None:
    # Small pictures fit into what the kernel holds for a program: it can only be late for its end then.
    size = "640x480" if "took no picture" in reason else "64x64"
    timeout_ms = "1000" if "hangs" in reason else "60000"
    options = ("--pictures", "25", "--size", size, "--queue", "64")
    found = closed_loop(bw_loop, tmp_path / "truth", options, ("--program-timeout-ms", timeout_ms, *words))
    code, result, _ = found["tracker"]
    assert code == 4
    assert len(result["invalid_reasons"]) == 1 or "floods" in reason
    assert result["invalid_reasons"][0].startswith(reason)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], 2, '--camera: ""; needed: ADDRESS:PORT'),
        (["--camera", "127.0.0.1:1"], 2, '--control: ""; needed: ADDRESS:PORT'),
        (["--camera", "127.0.0.1:1", "--control", "127.0.0.1:1", "--commands", "no"], 2, "always or edge"),
        (["--camera", "127.0.0.1:1", "--control", "127.0.0.1:1", "--program"], 2, "a program, and its words"),
        (
            ["--camera", "127.0.0.1:1", "--control", "127.0.0.1:1", "--program", "/no/such"],
            3,
            "cannot start /no/such",
        ),
    ],
)
def test_bad_options_are_refused(bw_loop: Path, words: list[str], code: int, said: str) -> None:
    done = subprocess.run([bw_loop, "tracker", *words], capture_output=True, text=True, timeout=HANG_S)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr


def test_display_keeps_to_its_folder(bw_loop: Path, tmp_path: Path) -> None:
    for words, code, said in (
        ([], 2, "--listen, --from"),
        (["--listen", free(), "--from", free()], 2, "--listen, --from"),
        (["--listen", free(), "--keep", tmp_path / "no/such"], 3, "cannot make"),
        (["--from", free(), "--timeout-ms", "50", "--priority", "0"], 4, "nobody could be reached"),
    ):
        done = subprocess.run([bw_loop, "display", *words], capture_output=True, text=True, timeout=HANG_S)
        assert done.returncode == code
        assert said in done.stderr
