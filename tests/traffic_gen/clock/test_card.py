# SPDX-License-Identifier: Apache-2.0
"""The virtual timecard between processes of this machine, where the true offset of counter and clock is 0."""

from __future__ import annotations

import json
import mmap
import random
import signal
import struct
import subprocess
import time
from pathlib import Path

import pytest

from tests.patience import HANG_S, wait_until
from tests.traffic_gen.clock.clock_page import (
    GUEST_LINE,
    HOST_LINE,
    PAGE_BYTES,
    REPLY,
    REQUEST,
    FakeServer,
    Json,
    Line,
    finish,
    let_work,
    run,
    served,
    started,
)

pytestmark = pytest.mark.slow

FILTER_NS = 2000


def compare(program: Path, page: Path, *options: str, device: str = "tai") -> tuple[int, Json]:
    """Compare a clock with the card; windows are filtered, so that each sample's own uncertainty is known."""
    code, result, errors = run(
        program, "compare", "--device", device, "--reference", f"card:{page}", "--read", "filtered",
        "--filter-ns", str(FILTER_NS), "--pause-max-us", "200", *options,
    )  # fmt: skip
    assert result, errors
    return code, result


def assert_bound_holds(result: Json) -> None:
    """The true offset is 0: no sample may be further away than its half window and the reference's bound."""
    allowed_ns = FILTER_NS // 2 + result["reference_bound_ns"]
    assert result["offset"]["n"] > 0
    assert -allowed_ns <= result["offset"]["min_ns"] <= result["offset"]["max_ns"] <= allowed_ns


def hz_of(program: Path) -> int:
    """Return the rate of this machine's counter."""
    _, result, _ = run(program, "latency", "--clock", "tsc", "--reads", "1")
    return int(result["tsc_hz"])


def test_true_error_is_within_the_bound_in_1000_trials(bw_clock: Path, tmp_path: Path) -> None:
    page = tmp_path / "page"
    with served(bw_clock, f"a={page}") as server:
        code, result, errors = run(
            bw_clock,
            "card",
            "calibrate",
            "--page",
            str(page),
            "--trials",
            "1000",
            "--trial-ms",
            "0",
            timeout_s=HANG_S,
        )
        assert finish(server)[0] == 0
    assert code == 0, errors
    assert len(result["trials"]) == 1000
    ns_per_tick = 1e9 / result["counter_hz"]
    broken = [trial for trial in result["trials"] if abs(trial[0]) * ns_per_tick > trial[1]]
    assert broken == []
    assert all(0 < trial[1] <= trial[2] for trial in result["trials"])


def test_card_of_the_host(bw_clock: Path, tmp_path: Path) -> None:
    page = tmp_path / "page"
    with served(bw_clock, f"a={page}"):
        code, result = compare(bw_clock, page, "--duration-ms", "2000")
    assert code == 0, result["invalid_reasons"]
    assert result["reference"]["source"] == "host"
    assert result["reference"]["bound_ns"] <= result["reference_bound_ns"]
    assert result["reference"]["calibration_bound_ns"] < result["reference_bound_ns"]
    assert_bound_holds(result)


def test_card_follows_the_guest_that_publishes(bw_clock: Path, tmp_path: Path) -> None:
    master, client = tmp_path / "gm", tmp_path / "dut"
    with served(bw_clock, f"gm={master}", f"dut={client}", source="gm") as server:
        with started(bw_clock, "card", "publish", "--page", str(master)) as publisher:
            code, result = compare(bw_clock, client, "--duration-ms", "1500")
            assert code == 0, result["invalid_reasons"]
            assert result["reference"]["source"] == "gm"
            assert_bound_holds(result)
            # A second publisher on the page is refused.
            assert run(bw_clock, "card", "publish", "--page", str(master))[0] == 3
            code, published = finish(publisher)
            assert code == 0
            assert published["published"] > 0
            assert published["steps"] == 0
        time.sleep(1.1)
        code, result = compare(bw_clock, client, "--duration-ms", "300")
        assert code == 4
        assert result["valid"] is False
        assert "stale" in result["invalid_reasons"][0]
        code, ended = finish(server)
        assert code == 0
        assert ended["source_missing"] > 0


def test_killed_server_is_seen_in_mid_run(bw_clock: Path, tmp_path: Path) -> None:
    page = tmp_path / "page"
    with served(bw_clock, f"a={page}") as server:
        arguments = ("--device", "tai", "--reference", f"card:{page}", "--duration-ms", "30000")
        with started(bw_clock, "compare", *arguments) as process:
            let_work(process)
            server.kill()
            code, result = finish(process, stop=False)
    assert code == 4
    assert result["complete"] is False
    assert result["valid"] is False
    assert any("stale" in reason for reason in result["invalid_reasons"])
    assert any("nobody answers" in reason for reason in result["invalid_reasons"])
    assert result["offset"]["n"] > 0
    # And a client that comes later sees that nobody is there.
    code, result = compare(bw_clock, page, "--duration-ms", "300")
    assert code == 4
    assert "nobody answers" in result["invalid_reasons"][0]
    assert result["offset"]["n"] == 0
    assert run(bw_clock, "card", "calibrate", "--page", str(page), "--trials", "1")[0] == 4
    assert run(bw_clock, "card", "publish", "--page", str(page))[0] == 4


def test_server_that_comes_back_serves_on(bw_clock: Path, tmp_path: Path) -> None:
    page = tmp_path / "page"
    for _ in range(2):
        with served(bw_clock, f"a={page}") as server:
            code, result = compare(bw_clock, page, "--duration-ms", "300")
            assert code == 0, result["invalid_reasons"]
            server.kill()
    with served(bw_clock, f"a={page}"):
        code, _, errors = run(bw_clock, "card", "serve", "--page", f"a={page}", "--source", "host")
        assert code == 3
        assert "another server" in errors


@pytest.mark.parametrize("content", [b"", b"short", bytes(PAGE_BYTES), b"\xa5" * PAGE_BYTES])
def test_page_that_no_server_has_made(bw_clock: Path, tmp_path: Path, content: bytes) -> None:
    page = tmp_path / "page"
    page.write_bytes(content)
    code, _, errors = run(bw_clock, "compare", "--device", "tai", "--reference", f"card:{page}")
    assert code == 3
    assert "page" in errors


def test_idle_server_needs_next_to_nothing(bw_clock: Path, tmp_path: Path) -> None:
    def cpu_ticks(process: subprocess.Popen[str]) -> int:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    with served(bw_clock, f"a={tmp_path / 'page'}") as server:
        begin_s, begin_ticks = time.monotonic(), cpu_ticks(server)
        time.sleep(3)
        share = (cpu_ticks(server) - begin_ticks) / 100 / (time.monotonic() - begin_s)
    assert share < 0.1


def test_guest_that_asks_all_the_time_does_not_hold_the_server(bw_clock: Path, tmp_path: Path) -> None:
    """New numbers without end: the server goes on publishing and ends when it is told to."""
    path = tmp_path / "page"
    with served(bw_clock, f"a={path}") as server, path.open("r+b") as file:
        page = mmap.mmap(file.fileno(), PAGE_BYTES)
        (begin,) = struct.unpack_from("<I", page, HOST_LINE)
        number = 0
        deadline_s = time.monotonic() + HANG_S
        while struct.unpack_from("<I", page, HOST_LINE)[0] < begin + 8:  # two a publication
            number += 1
            page[REQUEST : REQUEST + 8] = number.to_bytes(4, "little") + (number % 4).to_bytes(4, "little")
            assert time.monotonic() < deadline_s
        code, result = finish(server)
        page.close()
    assert code == 0
    assert result["pages"][0]["published"] > 3


def test_drift_between_begin_and_end_is_invalid(bw_clock: Path, tmp_path: Path) -> None:
    hz = hz_of(bw_clock)
    clocks = ("--device", "tai", "--reference", f"card:{tmp_path / 'page'}")
    with (
        FakeServer(tmp_path / "page", hz) as server,
        started(bw_clock, "compare", *clocks, "--duration-ms", "600000") as process,
    ):
        let_work(process)
        server.shift += 60 * hz  # far more than the bounds of a server that a busy machine makes slow
        let_work(process)
        code, result = finish(process)
    assert code == 4
    assert any("drifted" in reason for reason in result["invalid_reasons"]), result["invalid_reasons"]


def test_source_that_left_its_line_is_invalid(bw_clock: Path, tmp_path: Path) -> None:
    with (
        FakeServer(tmp_path / "page", hz_of(bw_clock)) as server,
        started(
            bw_clock,
            "compare",
            "--device",
            "tai",
            "--reference",
            f"card:{tmp_path / 'page'}",
            "--duration-ms",
            "600000",
        ) as process,
    ):
        server.line_changes = {"steps": 3}
        before = server.publications
        wait_until(lambda: server.publications > before + 1, "a line with its steps")
        code, result = finish(process)
    assert code == 4
    assert any("left its line 3 times" in reason for reason in result["invalid_reasons"])
    assert result["reference"]["source_steps"] == 3


@pytest.mark.parametrize(
    "changes",
    [
        {"ns_per_unit": float("nan")},
        {"ns_per_unit": float("inf")},
        {"bound_ns": -1},
        {"tai_ns": 2**62},
        {"unit": 3},
        {"source": b'"\n' + b"x" * 14},
        {"counter": 2**63},
        {"counter": 0},
        {"published": 0},
    ],
)
def test_lines_that_cannot_be(bw_clock: Path, tmp_path: Path, changes: Json) -> None:
    with FakeServer(tmp_path / "page", hz_of(bw_clock)) as server:
        server.line_changes = changes
        server.publish()
        code, result = compare(bw_clock, tmp_path / "page", "--duration-ms", "300")
    assert code == 4
    assert result["valid"] is False
    assert result["offset"]["n"] == 0


def test_hostile_page_harms_nobody(checked_bw_clock: Path, tmp_path: Path) -> None:
    """Garbage all over the page while server, publisher and client use it; under sanitizers."""
    path = tmp_path / "page"
    bits = random.Random(17)
    with served(checked_bw_clock, f"gm={path}", source="gm") as server, path.open("r+b") as file:
        page = mmap.mmap(file.fileno(), PAGE_BYTES)
        line = Line(counter=0, tai_ns=10**18, ns_per_unit=0.4).packed()
        deadline = time.monotonic() + 8
        codes: list[int] = []
        while time.monotonic() < deadline:
            clients = [
                subprocess.Popen(
                    [checked_bw_clock, *arguments],
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    text=True,
                )
                for arguments in (
                    ["compare", "--device", "tai", "--reference", f"card:{path}", "--duration-ms", "400"],
                    ["card", "calibrate", "--page", str(path), "--trials", "5", "--trial-ms", "10"],
                    ["card", "publish", "--page", str(path), "--duration-ms", "400"],
                )
            ]
            while any(client.poll() is None for client in clients):
                begin = bits.randrange(0, PAGE_BYTES - 8)
                page[begin : begin + 8] = bits.randbytes(8)
                if bits.random() < 0.2:
                    page[GUEST_LINE + 8 : GUEST_LINE + 8 + len(line)] = line
                    page[REPLY : REPLY + 16] = bits.randbytes(16)
                time.sleep(0.0002)
            for client in clients:
                assert client.stderr
                errors = client.stderr.read()
                client.stderr.close()
                assert "Sanitizer" not in errors, errors
                assert "runtime error" not in errors, errors
                codes.append(client.returncode)
        page.close()
        server.send_signal(signal.SIGTERM)
        output, errors = server.communicate(timeout=HANG_S)
    assert set(codes) <= {0, 3, 4}, codes
    assert (server.returncode, errors) == (0, "")
    assert json.loads(output.splitlines()[-1])["source_missing"] > 0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["serve", "--source", "host"], "--page is missing"),
        (["serve", "--page", "a=/tmp/none"], "--source"),
        (["serve", "--page", "a=/tmp/none", "--source", "b"], "host, or the name of a page"),
        (["serve", "--page", "nothing", "--source", "host"], "NAME=FILE"),
        (["serve", "--page", "=x", "--source", "host"], "NAME=FILE"),
        (["serve", "--page", "a name=x", "--source", "host"], "NAME=FILE"),
        (["serve", "--page", "host=x", "--source", "host"], "NAME=FILE"),
        (["serve", "--page", "averylongnameofaguest=x", "--source", "host"], "NAME=FILE"),
        (["serve", "--page", "a=x", "--page", "a=y", "--source", "host"], "given twice"),
        (["serve", "--page", "ab=x", "--page", "a=y", "--source", "c"], "host, or the name of a page"),
        (["calibrate", "--trials", "0"], "out of range"),
        (["publish", "--colour"], "unknown option"),
    ],
)
def test_bad_options(bw_clock: Path, arguments: list[str], text: str) -> None:
    code, result, errors = run(bw_clock, "card", *arguments)
    assert (code, result) == (2, {})
    assert text in errors
