# SPDX-License-Identifier: Apache-2.0
"""bw-timed on the loopback: servers lie, jump, disagree; it is killed, held and started anew.

One that vanishes, and a liar among three: test_truth_faults.py, against a truth that is known.
"""

from __future__ import annotations

import itertools
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from hw.tools import ROOT, local_tool
from tests.patience import HANG_S
from tests.targets.timeservice.lab import QUICK, TimedProcess, ToldServer, check_true, timectl

pytestmark = [pytest.mark.simulated, pytest.mark.slow]
S_NS = 10**9
UNIT = ROOT / "targets" / "linux-rt" / "timeservice" / "bw-timed.service"
FAST_KERNEL_CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

/* CLOCK_MONOTONIC_RAW is fast by 1000 ppm from two seconds after its first reading on. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	static int (*real)(clockid_t, struct timespec *);
	static long long changed_ns;
	long long ns;
	int result;

	if (!real)
		real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	result = real(clock, now);
	if (result || clock != CLOCK_MONOTONIC_RAW)
		return result;
	ns = now->tv_sec * 1000000000LL + now->tv_nsec;
	if (!changed_ns)
		changed_ns = ns + 2000000000LL;
	if (ns > changed_ns)
		ns += (ns - changed_ns) / 1000;
	now->tv_sec = ns / 1000000000LL;
	now->tv_nsec = ns % 1000000000LL;
	return 0;
}
"""
"""A program before which it is loaded sees its counter slow down, as after a move to another machine."""


def test_honest_server_gives_a_time_whose_bound_holds(page: Path) -> None:
    with ToldServer() as server, TimedProcess(page, "--server", server.text, *QUICK) as timed:
        sync = timed.syncs(5)
        said = check_true(page)
        assert timed.end() == 0
    assert (sync["state"], sync["servers"], sync["epoch"]) == ("locked", 1, 0)
    assert (said["state"], said["server"]) == ("synchronised", server.text)
    assert said["stratum"] == 2
    # What it has left is read by its bound.
    assert check_true(page)["state"] == "ended"


def kernel_tai_utc_s() -> int:
    """Return TAI - UTC as this machine's kernel was told; 0: it was not."""
    return round((time.clock_gettime_ns(time.CLOCK_TAI) - time.time_ns()) / S_NS)


@pytest.mark.parametrize("told_s", [None, 38])
def test_tai_utc_that_nobody_has_told_is_unknown(page: Path, told_s: int | None) -> None:
    """Stamps of the log are TAI by the usual 37 s then; readers are not told a guess."""
    told = [] if told_s is None else ["--tai-utc-s", str(told_s)]
    with ToldServer() as server, TimedProcess(page, "--server", server.text, *QUICK, *told) as timed:
        timed.syncs(3)
        said_s = timed.ctl("tracking")["tai_utc_s"]
    assert said_s == (kernel_tai_utc_s() if told_s is None else told_s)


def test_requests_carry_numbers_that_nobody_can_guess(page: Path) -> None:
    with ToldServer() as server, TimedProcess(page, "--server", server.text, *QUICK) as timed:
        timed.syncs(3)
        numbers = [int.from_bytes(request[40:48], "big") for request in server.requests]
    assert len(numbers) > 10
    assert len(set(numbers)) == len(numbers)
    assert numbers != sorted(numbers), "neither a counter nor a time of day"
    ones = sum(number.bit_count() for number in numbers) / len(numbers)
    assert 24 < ones < 40, "half of the 64 bits are set"


@pytest.mark.parametrize(
    ("lie", "reason"),
    [
        ("origin", "origin"),
        ("kiss-rate", "kiss-of-death"),
        ("stratum-16", "stratum"),
        ("leap", "leap"),
        ("mode", "mode"),
        ("version", "version"),
        ("short", "short"),
        ("root-distance", "root-distance"),
        ("no-stamps", "stamps"),
        ("order", "stamps"),
        ("negative-delay", "negative-delay"),
        ("silent", "no-answer"),
    ],
)
def test_lie_is_named_and_never_becomes_a_time(page: Path, lie: str, reason: str) -> None:
    with ToldServer() as server:
        server.lie = lie
        with TimedProcess(page, "--server", server.text, *QUICK, "--batches", "3") as timed:
            assert timed.process.wait(HANG_S) == 0
        (source,) = timectl(page, "sourcestats")["sources"]
    said = timectl(page, "tracking")
    assert not said["synchronised"]
    assert source["rejected"][reason] > 0
    assert sum(source["rejected"].values()) == source["rejected"][reason] + source["rejected"][
        "no-answer"
    ] * (reason != "no-answer")
    assert source["state"] in ("unreachable", "denied", "unfit")


def test_server_that_denies_is_asked_no_more(page: Path) -> None:
    with ToldServer() as server:
        server.lie = "kiss-deny"
        with TimedProcess(page, "--server", server.text, *QUICK, "--batches", "4") as timed:
            assert timed.process.wait(HANG_S) == 0
        assert server.asked() == 1
    assert timectl(page, "sources")["sources"][0]["state"] == "denied"


def test_jump_of_the_server_withdraws_the_time_and_then_steps_it(page: Path) -> None:
    with ToldServer() as server, TimedProcess(page, "--server", server.text, *QUICK) as timed:
        timed.syncs(4)
        server.ahead_s = 3600.0
        contradiction = timed.until(lambda line: line["type"] == "contradiction")
        timed.until_state("unsynchronised", "a server contradicts what it said before")
        assert not timed.ctl("tracking")["synchronised"]
        step = timed.until(lambda line: line["type"] == "step")
        timed.syncs(2)
        said = check_true(page, 3600 * S_NS)
    assert round(contradiction["step_ns"] / S_NS) == 3600
    assert round(step["step_ns"] / S_NS) == 3600
    assert (said["epoch"], round(said["step_ns"] / S_NS)) == (1, 3600)


def tracking_text(page: Path) -> str:
    """Return what `bw-timectl tracking` says to a reader."""
    argv = [str(local_tool("bw-timectl")), "tracking", "--page", str(page)]
    return subprocess.run(argv, check=False, capture_output=True, text=True).stdout


def test_killed_service_leaves_its_page_to_the_next_one(page: Path) -> None:
    with ToldServer() as server:
        with TimedProcess(page, "--server", server.text, *QUICK) as timed:
            timed.syncs(4)
            assert timed.ctl("tracking")["process_seen"]
            assert "dead" not in tracking_text(page)
            timed.kill()
        first = check_true(page)
        # Its time holds on, with a growing bound; that nobody keeps it is said.
        assert not timectl(page, "tracking")["process_seen"]
        assert f"dead: no bw-timed with process number {timed.process.pid} is seen" in tracking_text(page)
        inode = page.stat().st_ino
        time.sleep(0.5)
        assert check_true(page)["bound_ns"] > first["bound_ns"]
        with TimedProcess(page, "--server", server.text, *QUICK) as timed:
            # Before a server has answered it goes on by what it has found.
            timed.until_state("holdover")
            check_true(page)
            timed.until_state("synchronised")
            said = check_true(page)
    assert page.stat().st_ino == inode
    assert said["publications"] > first["publications"]
    assert said["epoch"] == 0


def test_process_that_got_the_number_of_a_killed_service_is_told_nothing(page: Path) -> None:
    """By SIGUSR1 it would end."""
    with ToldServer() as server, TimedProcess(page, "--server", server.text, *QUICK) as timed:
        timed.syncs(1)
        timed.kill()
        with subprocess.Popen(["sleep", str(HANG_S)]) as other:
            own, others = (pid.to_bytes(8, "little") for pid in (timed.process.pid, other.pid))
            assert own in page.read_bytes()
            page.write_bytes(page.read_bytes().replace(own, others))
            assert timed.tell("hold") == timed.tell("resume") == 3
            assert other.poll() is None
            other.terminate()
            assert other.wait(HANG_S) == -signal.SIGTERM


def test_second_service_is_refused(page: Path) -> None:
    with ToldServer() as server, TimedProcess(page, "--server", server.text, *QUICK) as timed:
        timed.syncs(1)
        argv = [str(local_tool("bw-timed")), "--page", str(page), "--server", server.text]
        second = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=HANG_S)
        assert second.returncode == 3
        assert "another time service has it" in second.stderr
        timed.syncs(1)


def _ends_for_good() -> list[str]:
    """Return the exit codes after which systemd does not start it again."""
    found = re.search(r"^RestartPreventExitStatus=(.*)$", UNIT.read_text(), re.MULTILINE)
    assert found is not None
    return found[1].split()


def test_changed_rate_of_the_counter_ends_it_for_a_new_start(page: Path, tmp_path: Path) -> None:
    library = tmp_path / "fast.so"
    compiler = ["gcc", "-shared", "-fPIC", "-xc", "-o", str(library), "-"]
    subprocess.run(compiler, input=FAST_KERNEL_CLOCK, check=True, text=True)
    prefix = ("env", f"LD_PRELOAD={library}")
    with ToldServer() as server, TimedProcess(page, "--server", server.text, *QUICK, prefix=prefix) as timed:
        timed.until(lambda line: line["type"] == "counter" and "rate has changed" in line["reason"])
        code = timed.process.wait(HANG_S)
        assert timed.process.stderr is not None
        assert "start it again" in timed.process.stderr.read()
    assert code == 4
    assert _ends_for_good() == ["2", "3"]
    # The next one measures the counter anew, and goes on with the page.
    with ToldServer() as server, TimedProcess(page, "--server", server.text, *QUICK) as timed:
        timed.syncs(1)
        check_true(page)


def test_what_fails_while_it_runs_is_no_missing_capability(page: Path) -> None:
    with TimedProcess(page, "--server", "127.0.0.1", *QUICK, "--log", "/dev/full") as timed:
        assert timed.process.wait(HANG_S) == 5
        assert timed.process.stderr is not None
        assert timed.process.stderr.read().startswith("bw-timed: service: ")


@pytest.mark.parametrize("by", ["signal", "bw-timectl"])
def test_held_service_asks_nobody(page: Path, by: str) -> None:
    with ToldServer() as server, TimedProcess(page, "--server", server.text, *QUICK) as timed:

        def tell(verb: str, number: signal.Signals) -> None:
            if by == "signal":
                timed.process.send_signal(number)
            else:
                assert timed.tell(verb) == 0

        timed.syncs(4)
        tell("hold", signal.SIGUSR1)
        timed.until_state("holdover", "asked to hold")
        asked = server.asked()
        time.sleep(0.7)
        assert server.asked() == asked
        assert check_true(page)["holding"]
        tell("resume", signal.SIGUSR2)
        timed.until_state("synchronised")
        assert server.asked() > asked
        assert not check_true(page)["holding"]


def test_two_that_disagree_give_no_time(page: Path) -> None:
    with ToldServer() as first, ToldServer() as second:
        second.ahead_s = 1.0
        with TimedProcess(page, "--server", first.text, "--server", second.text, *QUICK) as timed:
            timed.until_state("unsynchronised", "the servers contradict each other")
            assert not timed.ctl("tracking")["synchronised"]


def test_minimum_delay_that_is_not_kept_is_told(page: Path) -> None:
    with ToldServer() as server:
        text = f"{server.text},min-delay-ns=900000000"
        with TimedProcess(page, "--server", text, *QUICK) as timed:
            timed.until(lambda line: line.get("reason") == "min-delay")
            assert not timed.ctl("tracking")["synchronised"]


def test_flood_is_counted_and_the_true_answer_still_found(page: Path) -> None:
    def flood(link: socket.socket, request: bytes, client: tuple[str, int]) -> None:
        for i in range(40):
            link.sendto(bytes([0x24, 1]) + bytes(22) + bytes([i]) * 24, client)

    with ToldServer() as server:
        server.before_answer = flood
        with TimedProcess(page, "--server", server.text, *QUICK) as timed:
            more = timed.until(lambda line: line.get("reason") == "more")
            timed.syncs(3)
            check_true(page)
            (source,) = timed.ctl("sourcestats")["sources"]
    assert more["count"] > 0
    assert source["rejected"]["origin"] >= 40


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no server"),
        (["--server", "time.example"], "must be an IPv4 address"),
        (["--server", "127.0.0.1", "--interval-ms", "99"], "allowed: 100..86400000"),
        (["--server", "127.0.0.1,min-delay-ns=x"], "min-delay-ns: allowed: 0..1000000000"),
        (["--server", "127.0.0.1", "--min-servers", "2"], "2 of 1 servers"),
        (["--config", "/nonexistent.toml"], "/nonexistent.toml: No such file"),
        (["--server", "127.0.0.1", "more"], "surplus argument"),
    ],
)
def test_bad_input_is_refused(arguments: list[str], said: str) -> None:
    argv = [str(local_tool("bw-timed")), *arguments]
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert said in done.stderr


def test_settings_file_is_read_and_the_command_line_is_over_it(page: Path, tmp_path: Path) -> None:
    with ToldServer() as server:
        address, port = server.text.split(":")
        config = tmp_path / "timed.toml"
        config.write_text(
            f'[service]\ninterval_ms = 60_000\nbatch = 2\npage = "{page}"\n\n'
            f'[[server]]\naddress = "{address}"\nport = {port}\n'
        )
        with TimedProcess(
            page, "--config", str(config), "--interval-ms", "200", "--quick-batches", "0"
        ) as timed:
            ready = timed.until(lambda line: line["type"] == "ready")
            timed.syncs(1)
    assert (ready["interval_ms"], ready["batch"], ready["servers"]) == (200, 2, [server.text])


def test_answer_that_cannot_be_written_is_no_success(page: Path) -> None:
    with ToldServer() as server, TimedProcess(page, "--server", server.text, *QUICK) as timed:
        timed.until_state("synchronised")
        for verb, options in itertools.product(
            ("tracking", "sources", "sourcestats", "history"), ([], ["--json"])
        ):
            argv = [str(local_tool("bw-timectl")), verb, "--page", str(page), *options]
            with Path("/dev/full").open("w") as full:
                done = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, text=True, timeout=HANG_S)
            assert (done.returncode, done.stderr) == (
                3,
                "bw-timectl: what it had to say could not be written\n",
            )


def test_tool_without_a_service_says_so(tmp_path: Path) -> None:
    for verb in ("tracking", "sources", "hold"):
        argv = [str(local_tool("bw-timectl")), verb, "--page", str(tmp_path / "none")]
        done = subprocess.run(argv, check=False, capture_output=True, text=True)
        assert done.returncode == 3
        assert "no service has made it" in done.stderr


@pytest.mark.parametrize("taken", ["page", "folder"])
def test_page_that_is_taken_away_is_made_anew(tmp_path: Path, taken: str) -> None:
    folder = tmp_path / "time"
    folder.mkdir()
    page = folder / "page"
    with ToldServer() as server, TimedProcess(page, "--server", server.text, *QUICK) as timed:
        timed.syncs(1)
        if taken == "page":
            page.unlink()
        else:
            shutil.rmtree(folder)
            timed.until(lambda line: line["type"] == "page" and line["reason"] == "No such file or directory")
            folder.mkdir()
        timed.until(lambda line: line["type"] == "page" and line["reason"] == "made anew")
        timed.syncs(2)
        check_true(page)
        told = [line["reason"] for line in timed.seen if line["type"] == "page"]
        assert timed.end() == 0
    assert len(told) == (1 if taken == "page" else 2)
