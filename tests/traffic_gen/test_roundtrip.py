# SPDX-License-Identifier: Apache-2.0
"""The verbs echo and roundtrip with each other, over real sockets."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.patience import HANG_S
from tests.traffic_gen.lab import tai_ns
from tests.traffic_gen.stamp_lab import PATIENT_MS, Json, free_port, probe_peer, running_echo


@pytest.mark.parametrize("size_bytes", [44, 45, 47, 48, 64, 1472, 9000, 65507])
def test_round_trips_are_counted_and_divided(bw_traffic: Path, tmp_path: Path, size_bytes: int) -> None:
    series = tmp_path / "series.csv"
    before_ns = tai_ns()
    with running_echo(bw_traffic) as echo:
        options = ["--size-bytes", str(size_bytes), "--count", "50", "--series", str(series)]
        code, result = probe_peer(bw_traffic, echo.address, *options)
        reflected = echo.stop()
    assert (code, result["complete"], result["valid"], result["invalid_reasons"]) == (0, True, True, [])
    assert (result["tool"], result["peer"]) == ("bw-traffic roundtrip", echo.address)
    assert result["size_bytes"] == size_bytes
    assert (result["sent"], result["received"], result["lost"], result["interval_us"]) == (50, 50, 0, 1000)
    assert [result[key] for key in ("late", "duplicates", "foreign", "invalid", "unsent")] == [0] * 5
    assert (reflected["received"], reflected["reflected"], reflected["malformed"]) == (50, 50, 0)
    assert reflected["residence"]["n"] == 50
    for key in ("round_trip", "residence", "round_trip_without_residence"):
        assert result[key]["n"] == 50
        assert result[key]["min_ns"] >= 0
    rows = [{key: int(value) for key, value in row.items() if value} for row in csv.DictReader(series.open())]
    assert [row["sequence"] for row in rows] == list(range(50))
    assert min(row["round_trip_ns"] for row in rows) == result["round_trip"]["min_ns"]
    assert before_ns <= rows[0]["t1_local_tai_ns"] < rows[-1]["t1_local_tai_ns"] <= tai_ns()
    for row in rows:
        assert min(row.values()) >= 0
        assert row["residence_ns"] <= row["round_trip_ns"]


def test_the_thread_of_an_end_is_named_as_its_verb(bw_traffic: Path) -> None:
    """A record of the kernel says who had a processor by that name."""
    with running_echo(bw_traffic) as echo:
        probe_peer(bw_traffic, echo.address, "--count", "1")
        tasks = Path(f"/proc/{echo.process.pid}/task")
        assert "echo" in {(task / "comm").read_text().strip() for task in tasks.iterdir()}
        echo.stop()


def test_round_trips_over_ipv6(bw_traffic: Path) -> None:
    with running_echo(bw_traffic, host="[::1]") as echo:
        code, result = probe_peer(bw_traffic, echo.address, "--count", "20")
        reflected = echo.stop()
    assert (code, result["peer"], result["received"], result["foreign"]) == (0, echo.address, 20, 0)
    assert reflected["reflected"] == 20


def test_both_ends_see_their_own_parts_where_the_kernel_stamps(bw_traffic: Path) -> None:
    with running_echo(bw_traffic) as echo:
        _, result = probe_peer(bw_traffic, echo.address, "--count", "50")
        reflected = echo.stop()
    assert result["own_send"]["n"] == result["own_receive"]["n"] == result["below_stamps"]["n"] == 50
    assert result["own_send"]["min_ns"] > 0
    assert result["own_receive"]["min_ns"] > 0
    assert reflected["receive_stack"]["n"] == reflected["transmit_stack"]["n"] == 50


@pytest.mark.timed
@pytest.mark.parametrize(
    ("whose", "option", "part"),
    [
        ("echo", "--delay-receive-us", "receive_stack"),
        ("echo", "--delay-send-us", "transmit_stack"),
        ("roundtrip", "--delay-receive-us", "own_receive"),
        ("roundtrip", "--delay-send-us", "own_send"),
    ],
)
def test_a_known_delay_is_found_where_it_was_added(
    bw_traffic: Path, whose: str, option: str, part: str
) -> None:
    """Medians of many trips with and without it, one after the other; residence has no part in it."""
    grown_ns: list[int] = []
    for _ in range(5):
        medians_ns: list[int] = []
        for delay_us in ("0", "2000"):
            delay = [option, delay_us]
            with running_echo(bw_traffic, *(delay if whose == "echo" else [])) as echo:
                probing = ["--count", "100", *(delay if whose == "roundtrip" else [])]
                code, result = probe_peer(bw_traffic, echo.address, *probing)
                reflected = echo.stop()
            assert code == 0
            found = reflected if whose == "echo" else result
            assert found[option[2:].replace("-", "_")] == int(delay_us)
            if delay_us != "0":
                assert found[part]["min_ns"] >= 2_000_000
            medians_ns.append(result["round_trip_without_residence"]["p50_ns"])
        grown_ns.append(medians_ns[1] - medians_ns[0])
        if abs(grown_ns[-1] - 2_000_000) < 500_000:
            return
    pytest.fail(f"2 ms were added, but the medians grew by {grown_ns} ns")


def test_a_delay_is_never_shorter_than_it_should(bw_traffic: Path) -> None:
    with running_echo(bw_traffic, "--delay-receive-us", "2000", "--delay-send-us", "300") as echo:
        _, result = probe_peer(bw_traffic, echo.address, "--count", "20", "--delay-send-us", "700")
        reflected = echo.stop()
    assert result["round_trip_without_residence"]["min_ns"] >= 3_000_000
    assert (reflected["delay_receive_us"], reflected["delay_send_us"]) == (2000, 300)
    assert (result["delay_receive_us"], result["delay_send_us"]) == (0, 700)
    assert reflected["delayed_receive_mean_ns"] >= 2_000_000
    assert reflected["delayed_send_mean_ns"] >= 300_000
    assert (result["delayed_receive_mean_ns"], result["delayed_send_mean_ns"] >= 700_000) == (0, True)


@pytest.mark.parametrize("own", [(), ("--delays-in-residence",)])
def test_a_delay_that_is_in_the_residence_is_as_long_a_wait(bw_traffic: Path, own: tuple[str, ...]) -> None:
    """Told by the stamps or not: the twin that has a known delay, and its control."""
    waits = ["--delay-receive-us", "2000", "--delay-send-us", "300", "--hold-us", "700", *own]
    with running_echo(bw_traffic, *waits) as echo:
        _, result = probe_peer(bw_traffic, echo.address, "--count", "20")
        reflected = echo.stop()
    assert result["round_trip"]["min_ns"] >= 3_000_000
    assert reflected["delayed_receive_mean_ns"] >= 2_000_000
    assert reflected["delayed_send_mean_ns"] >= 300_000
    told, untold = result["residence"], result["round_trip_without_residence"]
    assert told["min_ns"] >= (3_000_000 if own else 700_000)
    assert own or untold["min_ns"] >= 2_300_000
    assert not own or untold["p50_ns"] < 2_300_000


def test_each_trip_has_its_known_delay(bw_traffic: Path, tmp_path: Path) -> None:
    """What both ends have waited outside the reflector's stamps; a reply without room for it does not say."""
    series = tmp_path / "series.csv"
    waits = ["--delay-receive-us", "200", "--delay-send-us", "300", "--hold-us", "700"]
    for options, at_least_us in [
        ([], 500),
        (["--delay-send-us", "60", "--delay-receive-us", "40"], 600),
    ]:
        with running_echo(bw_traffic, *waits) as echo:
            trips = ["--count", "40", "--size-bytes", "56", "--series", str(series), *options]
            _, result = probe_peer(bw_traffic, echo.address, *trips)
            reflected = echo.stop()
        known_ns = [int(row["known_delay_ns"]) for row in csv.DictReader(series.open())]
        assert len(known_ns) == 40
        assert min(known_ns) >= at_least_us * 1000
        means_ns = [
            answer[f"delayed_{way}_mean_ns"] for answer in (reflected, result) for way in ("receive", "send")
        ]
        assert sum(known_ns) / 40 == pytest.approx(sum(means_ns), abs=4)
    for size, own, known in [("55", (), ""), ("56", ("--delays-in-residence",), "0")]:
        with running_echo(bw_traffic, *waits, *own) as echo:
            probe_peer(
                bw_traffic, echo.address, "--count", "5", "--size-bytes", size, "--series", str(series)
            )
        assert [row["known_delay_ns"] for row in csv.DictReader(series.open())] == [known] * 5


def test_requests_of_a_run_up_do_not_count(bw_traffic: Path, tmp_path: Path) -> None:
    series = tmp_path / "series.csv"
    turns = ["--turn-trips", "5", "--turn-run-up", "2", "--turn-every-us", "20000", "--series", str(series)]

    def measured() -> tuple[Json, Json]:
        with running_echo(bw_traffic) as echo:
            _, result = probe_peer(bw_traffic, echo.address, "--count", "20", *turns)
            return result, echo.stop()

    result, reflected = measured()
    for _ in range(20):  # the machine has taken slots: they are left out
        if reflected["reflected"] == 20:
            break
        assert result["sent"] <= reflected["reflected"] < 20
        result, reflected = measured()
    assert (result["sent"], result["received"], result["lost"]) == (12, 12, 0)
    assert (reflected["reflected"], result["round_trip"]["n"], result["own_send"]["n"]) == (20, 12, 12)
    rows = list(csv.DictReader(series.open()))
    assert [int(row["sequence"]) % 5 for row in rows] == [2, 3, 4] * 4


def test_a_turn_of_run_up_alone_is_refused(bw_traffic: Path) -> None:
    command = [
        bw_traffic,
        "roundtrip",
        "--peer",
        "127.0.0.1:9",
        "--turn-trips",
        "5",
        "--turn-every-us",
        "50000",
    ]
    done = subprocess.run([*command, "--turn-run-up", "5"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--turn-run-up: 5; allowed: fewer than --turn-trips, 5" in done.stderr


def test_a_reply_is_held_asleep_as_part_of_the_residence(bw_traffic: Path) -> None:
    with running_echo(bw_traffic, "--hold-us", "3000") as echo:
        _, result = probe_peer(bw_traffic, echo.address, "--count", "30", "--interval-us", "6000")
        reflected = echo.stop()
    assert reflected["hold_us"] == 3000
    assert result["received"] == 30
    assert min(reflected["residence"]["min_ns"], result["residence"]["min_ns"]) >= 2_999_000
    assert result["round_trip"]["min_ns"] >= 3_000_000
    assert result["round_trip_without_residence"]["min_ns"] < 3_000_000
    assert reflected["receive_stack"]["min_ns"] < 3_000_000


def test_turns_are_taken_on_their_grid(bw_traffic: Path, tmp_path: Path) -> None:
    """Never before a slot; a slot that is over when its time comes is left out."""
    series = tmp_path / "series.csv"
    first_ns, every_ns = tai_ns() - 100_000_000, 40_000_000  # two turns and a half are over
    with running_echo(bw_traffic) as echo:
        turns = ["--first-tai-ns", str(first_ns), "--turn-trips", "3", "--turn-every-us", "40000"]
        code, result = probe_peer(bw_traffic, echo.address, "--count", "60", "--series", str(series), *turns)
    assert code == 0
    assert 3 <= result["sent"] <= 52
    after_ns = [int(row["t1_local_tai_ns"]) - first_ns for row in csv.DictReader(series.open())]
    assert min(after_ns) >= 100_000_000
    numbers = [after // every_ns for after in after_ns]
    assert max(numbers) >= 19, "the last turn"
    assert all(numbers.count(number) <= 3 for number in range(3, 19)) or result["sent"] < 52


def test_nobody_there_is_invalid(bw_traffic: Path) -> None:
    code, result = probe_peer(bw_traffic, f"127.0.0.1:{free_port()}", "--count", "3", "--timeout-ms", "10")
    assert code == 4
    assert (result["sent"], result["received"], result["lost"]) == (3, 0, 3)
    assert result["invalid_reasons"] == ["the peer has not answered"]


def test_a_stopped_measurement_keeps_its_series(bw_traffic: Path, tmp_path: Path) -> None:
    series = tmp_path / "series.csv"
    with running_echo(bw_traffic) as echo:
        command = [bw_traffic, "roundtrip", "--peer", echo.address, "--count", "1000000", "--series", series]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            while not json.loads(process.stdout.readline()).get("received"):
                pass
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=HANG_S)
    result = json.loads(output.splitlines()[-1])
    assert process.returncode == 4
    assert not result["complete"]
    assert result["invalid_reasons"] == ["stopped before its end"]
    assert len(series.read_text().splitlines()) == 1 + result["sent"]


def test_a_series_on_a_full_disk_is_no_success(bw_traffic: Path) -> None:
    with running_echo(bw_traffic) as echo:
        command = [bw_traffic, "roundtrip", "--peer", echo.address, "--count", "5", "--series", "/dev/full"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.returncode == 3
    assert done.stderr == "bw-traffic roundtrip: /dev/full: No space left on device\n"
    assert json.loads(done.stdout.splitlines()[-1])["type"] == "result"


def test_durations_end_both(bw_traffic: Path) -> None:
    with running_echo(bw_traffic, "--duration-ms", "600") as echo:
        code, result = probe_peer(bw_traffic, echo.address, "--duration-ms", "100", "--timeout-ms", "10")
        output, _ = echo.process.communicate(timeout=HANG_S)
    assert result["complete"]
    assert 0 < result["sent"] <= 101
    assert code == (0 if result["received"] else 4)
    assert echo.process.returncode == 0
    assert json.loads(output.splitlines()[-1])["complete"]


def test_a_reflector_that_is_stopped_early_is_incomplete(bw_traffic: Path) -> None:
    with running_echo(bw_traffic, "--duration-ms", PATIENT_MS) as echo:
        echo.process.send_signal(signal.SIGTERM)
        output, _ = echo.process.communicate(timeout=HANG_S)
    result = json.loads(output.splitlines()[-1])
    assert echo.process.returncode == 4
    assert (result["complete"], result["invalid_reasons"]) == (False, ["stopped before its end"])


@pytest.mark.parametrize(
    "arguments",
    [
        ["echo"],
        ["echo", "--listen", "127.0.0.1"],
        ["echo", "--listen", "127.0.0.1:1", "--delay-send-us", "100001"],
        ["roundtrip"],
        ["roundtrip", "--peer", "localhost:1"],
        ["roundtrip", "--peer", "127.0.0.1:1", "--size-bytes", "43"],
        ["roundtrip", "--peer", "127.0.0.1:1", "--size-bytes", "65508"],
        ["roundtrip", "--peer", "127.0.0.1:1", "--interval-us", "0"],
        ["roundtrip", "--peer", "127.0.0.1:1", "--interval-us", "100", "--duration-ms", "100001"],
        ["roundtrip", "--peer", "127.0.0.1:1", "--turn-trips", "5"],
        ["roundtrip", "--peer", "127.0.0.1:1", "--turn-trips", "5", "--turn-every-us", "49999"],
        ["roundtrip", "--peer", "127.0.0.1:1", "--series", "/no/such/directory/series.csv"],
    ],
)
def test_bad_arguments_are_refused_in_one_line(bw_traffic: Path, arguments: list[str]) -> None:
    done = subprocess.run([bw_traffic, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert not done.stdout
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("verb", ["echo", "roundtrip"])
def test_help_names_ranges(bw_traffic: Path, verb: str) -> None:
    done = subprocess.run([bw_traffic, verb, "--help"], capture_output=True, text=True, check=True)
    assert "0..100000 us" in done.stdout
