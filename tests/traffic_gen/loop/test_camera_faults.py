# SPDX-License-Identifier: Apache-2.0
"""The verb camera beside clients that are not there, go, flood or send what is no command."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.patience import HANG_S
from tests.traffic_gen.loop.cameras import PATIENT, Truth, connect, header, read_stream
from tests.traffic_gen.two_ends import Json, end, ended, free


@contextmanager
def camera(
    bw_loop: Path, truth: Path, *options: str
) -> Generator[tuple[subprocess.Popen[str], socket.socket, socket.socket]]:
    """Run a camera; gives its process, the connection of pictures and that of commands."""
    serve = ["--serve", free(), "--commands", free(), "--truth", truth, "--wait-for-client", *PATIENT]
    with (
        end(bw_loop, "camera", *serve, *options) as (process, ready),
        connect(ready["address"]) as pictures,
        connect(ready["commands_address"]) as commands,
    ):
        yield process, pictures, commands


def first(pictures: socket.socket) -> None:
    """Wait for the first picture's first byte."""
    assert pictures.recv(1) == b"B"


def test_without_a_client_pictures_are_discarded(bw_loop: Path) -> None:
    words = ["--serve", free(), "--pictures", "20", "--pictures-per-s", "100", *PATIENT]
    with end(bw_loop, "camera", *words) as (process, _):
        code, result, said = ended(process)
    assert (code, result["complete"], said) == (0, True, "")
    counts = result["pictures"]
    assert (counts["captured"], counts["sent"]) == (20, 0)
    assert counts["discarded"] + counts["overrun"] == 20


def test_a_client_that_reads_nothing_costs_pictures_not_time(bw_loop: Path, tmp_path: Path) -> None:
    options = ["--pictures", "60", "--pictures-per-s", "50", "--size", "1024x768", "--queue", "2"]
    with camera(bw_loop, tmp_path / "truth", *options) as (process, pictures, commands):
        commands.close()
        deadline_s = time.monotonic() + HANG_S
        while "picture" not in (tmp_path / "truth").read_text().rsplit('"number":59', 1)[0] or (
            '"number":59' not in (tmp_path / "truth").read_text()
        ):
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
        sent, rest = read_stream(pictures)
        code, result, _ = ended(process)
    assert code == 4  # the connection of commands ended before the last picture
    counts = result["pictures"]
    assert counts["captured"] == 60 == counts["sent"] + counts["overrun"]
    assert counts["overrun"] > 0
    assert counts["queue_most"] == 2
    assert len(sent) == counts["sent"]
    truth = Truth(tmp_path / "truth")
    assert sum(each["queued"] for each in truth.pictures.values()) == counts["sent"]
    assert rest[12:16] == (60).to_bytes(4)
    # The camera has seen the client's window full from the pictures that it could still take to the last.
    waited_us = [each["receiver_limited_us"] for each in truth.connections.values()]
    assert len(waited_us) == counts["sent"]
    assert waited_us[-1] > 100_000


def test_the_stream_says_where_it_ends_and_nothing_of_the_target(bw_loop: Path, tmp_path: Path) -> None:
    with camera(bw_loop, tmp_path / "truth", "--pictures", "3") as (process, pictures, commands):
        sent, rest = read_stream(pictures)
        commands.close()
        code, result, _ = ended(process)
    assert (code, result["valid"]) == (0, True)
    assert [int.from_bytes(each[12:16]) for each in sent] == [0, 1, 2]
    assert rest == header(3, (320, 240), is_end=True)
    truth = Truth(tmp_path / "truth")
    for number, each in enumerate(sent):
        pose = truth.pictures[number]["pose"]
        assert each[16:28] == b"".join(pose[key].to_bytes(4) for key in ("x_q8", "y_q8", "zoom_q8"))
        assert truth.rendered(bw_loop, number).endswith(each[40:])
        assert len(truth.rendered(bw_loop, number)) == 76800 + len("P5\n320 240\n255\n")


def test_a_client_that_goes_is_told(bw_loop: Path, tmp_path: Path) -> None:
    options = ["--pictures", "30", "--pictures-per-s", "100"]
    with camera(bw_loop, tmp_path / "truth", *options) as (process, pictures, commands):
        first(pictures)
        pictures.close()
        while '"number":29' not in (tmp_path / "truth").read_text():
            time.sleep(0.01)
        commands.close()
        code, result, said = ended(process)
    # The last picture's line is written a little before all is captured.
    assert (code, result["invalid_reasons"][0]) == (4, "the client of the pictures has gone")
    assert "the client of the pictures has gone" in said
    counts = result["pictures"]
    assert counts["captured"] == 30
    assert counts["sent"] + counts["unsent"] + counts["discarded"] + counts["overrun"] == 30
    assert counts["unsent"] == 1


@pytest.mark.parametrize("delay_ms", ["0", "200"])
def test_a_tracker_that_dies_stops_the_mount(bw_loop: Path, tmp_path: Path, delay_ms: str) -> None:
    options = ["--pictures", "50", "--pan-px-s", "50", "--motor-delay-ms", delay_ms, "--look", "500,500"]
    with camera(bw_loop, tmp_path / "truth", *options) as (process, pictures, commands):
        first(pictures)
        commands.sendall(b"look 0 400000 300000 256\n")
        if delay_ms == "0":
            while '"motor_ns"' not in (tmp_path / "truth").read_text():
                time.sleep(0.001)
        commands.close()
        read_stream(pictures)
        code, result, _ = ended(process)
    assert (code, result["complete"]) == (4, False)
    assert result["invalid_reasons"] == ["the tracker's connection ended before the last picture"]
    counts = result["commands"]
    obeyed = int(delay_ms == "0")
    assert (counts["received"], counts["obeyed"], counts["dropped"]) == (1, obeyed, 1 - obeyed)
    truth = Truth(tmp_path / "truth")
    x_q8 = [each["pose"]["x_q8"] for each in truth.pictures.values()]
    assert x_q8[-1] == x_q8[-2] < 400000
    assert x_q8[0] == 500 * 256
    assert obeyed or len(set(x_q8)) == 1


def test_a_tracker_that_floods_is_told(bw_loop: Path, tmp_path: Path) -> None:
    with camera(bw_loop, tmp_path / "truth", "--pictures", "25") as (process, pictures, commands):
        first(pictures)
        commands.sendall(b"look 0 400000 300000 256\n" * 2000)
        read_stream(pictures)
        code, result, _ = ended(process)
    assert code == 4
    assert "the tracker floods: more than 1000 commands were refused" in result["invalid_reasons"]
    assert result["pictures"]["captured"] == 25
    assert result["commands"]["obeyed"] + result["commands"]["dropped"] == 1
    assert result["commands"]["refused"] == result["commands"]["received"] - 1 > 1000


def test_what_is_no_command_is_counted_by_its_reason(bw_loop: Path, tmp_path: Path) -> None:
    bad = [
        b"look 0 1 1 1\n",
        b"x" * 500 + b"\n",
        b"\n",
        b"\xff\0\n",
        b"look 0 1 1 256 \n",
        b"look 0 1 1 256\0\n",
        b"look 99 1 1 256\n",
    ]
    with camera(bw_loop, tmp_path / "truth", "--pictures", "10") as (process, pictures, commands):
        first(pictures)
        for each in bad:
            commands.sendall(each)
        for byte in b"look 0 2 300000 256\n":
            commands.sendall(bytes([byte]))
        commands.sendall(b"look 0 1 1 256\nlook 1 1 ")
        read_stream(pictures)
        commands.close()
        code, result, _ = ended(process)
    assert (code, result["invalid_reasons"]) == (4, ["commands were refused"])
    counts = result["commands"]
    assert (counts["received"], counts["refused"], counts["obeyed"], counts["clamped"]) == (10, 9, 1, 1)
    assert counts["refused_by_reason"] == {
        "has no zoom of 64 to 4096 at its end": 1,
        "has something behind the zoom": 2,
        "is longer than 127 bytes": 1,
        'does not begin with "look "': 2,
        "answers a picture that there is not yet": 1,
        "answers no later picture than the one before it": 1,
        "has no end of the line": 1,
    }
    truth = Truth(tmp_path / "truth")
    [obeyed] = [each for each in truth.commands.values() if not each["refused"]]
    assert (obeyed["clamped"], obeyed["look"]["x_q8"]) == (["x"], 2)
    assert obeyed["goal"]["x_q8"] == 160 * 256 - 128
    assert len(truth.commands) == 10


def test_a_picture_that_was_not_sent_cannot_be_answered(bw_loop: Path, tmp_path: Path) -> None:
    """The client reads nothing behind the first picture: what follows waits, or finds the queue full."""
    options = ["--pictures", "15", "--pictures-per-s", "50", "--size", "2048x2048", "--queue", "2"]
    path = tmp_path / "truth"
    with camera(bw_loop, path, *options) as (process, pictures, commands):
        got = 0
        while got < 40 + 2048 * 2048:
            got += len(pictures.recv(40 + 2048 * 2048 - got))
        while '"number":14,"captured_ns"' not in path.read_text():
            time.sleep(0.01)
        commands.sendall(b"".join(b"look %d 400000 300000 256\n" % number for number in range(15)))
        while path.read_text().count('"type":"command"') < 15:
            time.sleep(0.01)
        sent, _ = read_stream(pictures)
        commands.close()
        code, result, _ = ended(process)
    truth = Truth(path)
    queued = [number for number, each in truth.pictures.items() if each["queued"]]
    assert [0, *(int.from_bytes(each[12:16]) for each in sent)] == queued
    obeyed = [each["picture"] for each in truth.commands.values() if not each["refused"]]
    last_ns = max(each["came_ns"] for each in truth.commands.values())
    gone = [number for number, each in truth.connections.items() if each["t_ns"] < last_ns]
    # Besides what the kernel holds one is being sent; the last one waits.
    assert set(obeyed) <= set(queued[: len(gone) + 1]) - {queued[-1]}
    assert obeyed[0] == 0
    counts = result["commands"]
    assert (code, result["invalid_reasons"]) == (4, ["commands were refused"])
    assert (counts["received"], counts["obeyed"]) == (15, len(obeyed))
    assert counts["refused_by_reason"] == {"answers a picture that was not sent": 15 - len(obeyed)}


def test_a_camera_without_a_client_obeys_nobody(bw_loop: Path, tmp_path: Path) -> None:
    words = ["--serve", free(), "--commands", free(), "--pictures", "100000", "--pictures-per-s", "100"]
    path = tmp_path / "truth"
    with (
        end(bw_loop, "camera", *words, "--truth", path, *PATIENT) as (process, ready),
        connect(ready["commands_address"]) as commands,
    ):
        while '"number":3,"captured_ns"' not in path.read_text():
            time.sleep(0.01)
        commands.sendall(b"look 2 400000 300000 256\n")
        while '"type":"command"' not in path.read_text():
            time.sleep(0.01)
        process.terminate()
        _, result, _ = ended(process)
    assert result["commands"]["refused_by_reason"] == {"answers a picture that was not sent": 1}


def test_stop_ends_it_with_what_it_has(bw_loop: Path, tmp_path: Path) -> None:
    with camera(bw_loop, tmp_path / "truth", "--pictures", "100000") as (process, pictures, commands):
        first(pictures)
        process.terminate()
        sent, rest = read_stream(pictures)
        commands.close()
        code, result, _ = ended(process)
    assert (code, result["complete"]) == (4, False)
    assert result["invalid_reasons"] == ["stopped before its end"]
    captured = result["pictures"]["captured"]
    assert rest[:6] == b"BWPI\1\1" or not sent  # a byte of the first picture was read apart
    assert len(Truth(tmp_path / "truth").pictures) == captured < 100000


def test_nobody_comes(bw_loop: Path) -> None:
    words = ["--serve", free(), "--wait-for-client", "--timeout-ms", "50", "--priority", "0"]
    with end(bw_loop, "camera", *words) as (process, _):
        code, result, _ = ended(process)
    assert (code, result["invalid_reasons"]) == (4, ["nobody came for the pictures in time"])


def test_a_truth_file_that_cannot_be_written_is_told(bw_loop: Path) -> None:
    words = ["--serve", free(), "--pictures", "3", "--truth", "/dev/full", *PATIENT]
    with end(bw_loop, "camera", *words) as (process, _):
        code, result, _ = ended(process)
    assert (code, result["invalid_reasons"]) == (4, ["the truth file could not be written"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], '--serve: ""; needed: ADDRESS:PORT'),
        (["--serve", "127.0.0.1"], '--serve: "127.0.0.1"; needed: ADDRESS:PORT'),
        (["--serve", "127.0.0.1:1", "--path", "straight"], "still, constant, circle or wander"),
        (["--serve", "127.0.0.1:1", "--size", "320"], "WIDTHxHEIGHT, 32 to 2048 each"),
        (["--serve", "127.0.0.1:1", "--size", "31x240"], "WIDTHxHEIGHT, 32 to 2048 each"),
        (["--serve", "127.0.0.1:1", "--world-size", "320x240x"], "WIDTHxHEIGHT, 256 to 8192 each"),
        (["--serve", "127.0.0.1:1", "--still-ms", "600001"], "0..600000"),
        (["--serve", "127.0.0.1:1", "--zoom-speed-q8", "0"], "1..1000000"),
        (["--serve", "127.0.0.1:1", "--look", "3000,1"], "X,Y in pixels of the world"),
        (["--serve", "127.0.0.1:1", "--open-loop", "--reversed"], "one of them, or none"),
        (["--serve", "127.0.0.1:1", "--exposure-us", "40001"], "at most the period"),
    ],
)
def test_bad_options_are_refused(bw_loop: Path, words: list[str], said: str) -> None:
    done = subprocess.run([bw_loop, "camera", *words], capture_output=True, text=True, timeout=HANG_S)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_render_and_where_refuse_what_is_none(bw_loop: Path) -> None:
    for words, said in (
        (["render", "--captured-ns", "4999999"], "half the exposure"),
        (["where", "x"], '"x"; needed: ns'),
        (["where"], "usage"),
    ):
        done = subprocess.run([bw_loop, *words], capture_output=True, text=True, timeout=HANG_S)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr
    done = subprocess.run([bw_loop, "where", "0", "1000"], capture_output=True, text=True, timeout=HANG_S)
    places: list[Json] = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["t_ns"] for each in places] == [0, 1000]
