# SPDX-License-Identifier: Apache-2.0
"""bw-clock compare and latency on this machine's own clocks and on a clock that a plug-in makes up."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.patience import HANG_S, wait_until
from tests.traffic_gen.clock.clock_page import finish, is_stopped, let_work, run, started

MEMORY_BYTES = 32 * 2**20
FAST = ("--iterations", "3000", "--pause-max-us", "20")


def test_two_clocks_of_one_kernel_agree(bw_clock: Path) -> None:
    code, result, _ = run(bw_clock, "compare", "--device", "realtime", "--reference", "tai", *FAST)
    assert code == 0
    assert result["complete"]
    assert result["valid"]
    assert result["invalid_reasons"] == []
    assert (result["read"], result["phc_read"]) == ("bracketed", None)
    assert result["iterations"] == result["offset"]["n"] == result["window"]["n"] == 3000
    assert result["discarded"] == 0
    # They are one clock: the device is read between the two readings of the reference.
    assert abs(result["offset"]["p50_ns"]) <= result["window"]["p50_ns"]
    assert result["window"]["min_ns"] >= 0
    assert result["device"]["tai_utc_s"] == result["reference"]["tai_utc_s"] == 37
    assert result["reference_bound_ns"] is None
    assert result["memory"]["rss_end_bytes"] <= MEMORY_BYTES


def test_sequential_reads_the_device_first(bw_clock: Path) -> None:
    code, result, _ = run(
        bw_clock, "compare", "--device", "tai", "--reference", "tai", "--read", "sequential", *FAST
    )
    assert code == 0
    # The reference is read later, so the device seems behind: the paper's positive sign is our negative one.
    assert result["offset"]["max_ns"] <= 0
    assert result["offset"]["n"] == 3000
    assert result["window"]["n"] == 0


def test_filtered_reads_are_counted(bw_clock: Path) -> None:
    common = ("compare", "--device", "realtime", "--reference", "tai", "--read", "filtered", *FAST)
    _, loose, _ = run(bw_clock, *common, "--filter-ns", "1000000000")
    limit_ns = loose["window"]["p50_ns"]
    code, result, _ = run(bw_clock, *common, "--filter-ns", str(limit_ns))
    assert code in (0, 4)
    assert result["offset"]["n"] + result["discarded"] == result["iterations"] == 3000
    assert result["discarded"] > 0
    assert result["filter_ns"] == limit_ns
    if result["offset"]["n"]:
        assert result["window"]["max_ns"] <= limit_ns
        assert max(-result["offset"]["min_ns"], result["offset"]["max_ns"]) <= limit_ns


def test_a_window_that_ends_before_it_begins_is_filtered_out(bw_clock: Path, example_clock: Path) -> None:
    """The reference is put back by 5 ms at any of the readings of an iteration, also within the window."""
    discarded: list[int] = []
    for step_after in range(400, 404):
        reference = f"plugin:{example_clock},step_ns=-5000000,step_after={step_after}"
        common = ("--device", "realtime", "--reference", reference, "--read", "filtered")
        _, result, _ = run(bw_clock, "compare", *common, "--filter-ns", "1000000000", *FAST)
        discarded.append(result["discarded"])
        assert result["window"]["min_ns"] >= 0
    assert sorted(discarded) == [0, 0, 0, 1]


def test_nothing_left_after_the_filter_is_invalid(bw_clock: Path) -> None:
    code, result, _ = run(
        bw_clock, "compare", "--device", "realtime", "--reference", "tai", "--read", "filtered",
        "--filter-ns", "1", "--iterations", "200", "--pause-max-us", "0",
    )  # fmt: skip
    assert code == 4
    assert result["valid"] is False
    assert result["discarded"] == 200
    assert "filter-ns" in result["invalid_reasons"][0]
    assert result["offset"]["mean_ns"] is None


@pytest.mark.parametrize("clock", ["monotonic-raw", "tsc", "realtime-coarse"])
def test_other_clocks(bw_clock: Path, clock: str) -> None:
    code, result, _ = run(bw_clock, "compare", "--device", clock, "--reference", "tai", *FAST)
    assert code == 0
    assert result["device"]["kind"] == clock
    # Set to TAI at the begin, or a coarse reading of it: far nearer than TAI and UTC are.
    assert abs(result["offset"]["p50_ns"]) < 10**9


def test_series_has_every_sample(bw_clock: Path) -> None:
    begin_ns = time.monotonic_ns()
    code, result, _ = run(
        bw_clock, "compare", "--device", "realtime", "--reference", "tai", "--duration-ms", "1500",
        "--pause-max-us", "200", "--series-interval-ms", "10",
    )  # fmt: skip
    assert code == 0
    series = result["series"]
    assert begin_ns <= result["start_monotonic_ns"] <= time.monotonic_ns() - result["elapsed_ns"]
    assert series["columns"] == ["time_tai_ns", "n", "mean_ns", "min_ns", "max_ns"]
    rows = series["rows"]
    assert sum(row[1] for row in rows) == result["offset"]["n"]
    assert min(row[3] for row in rows) == result["offset"]["min_ns"]
    assert max(row[4] for row in rows) == result["offset"]["max_ns"]
    assert all(row[3] <= row[2] <= row[4] for row in rows)
    assert all((row[0] - result["start_tai_ns"]) % series["interval_ns"] == 0 for row in rows)
    assert [row[0] for row in rows] == sorted({row[0] for row in rows})


def test_memory_does_not_grow(bw_clock: Path) -> None:
    """Two million samples at an interval that is halved often."""
    code, result, _ = run(
        bw_clock, "compare", "--device", "realtime", "--reference", "tai", "--iterations", "2000000",
        "--pause-max-us", "0", "--series-interval-ms", "1",
    )  # fmt: skip
    assert code == 0
    assert result["offset"]["n"] == 2_000_000
    assert result["memory"]["rss_end_bytes"] <= MEMORY_BYTES
    assert result["memory"]["rss_end_bytes"] - result["memory"]["rss_start_bytes"] <= 2**21


def test_signal_ends_a_run_early(bw_clock: Path) -> None:
    arguments = ("--device", "realtime", "--reference", "tai", "--duration-ms", "60000")
    with started(bw_clock, "compare", *arguments) as process:
        let_work(process)
        code, result = finish(process)
    assert code == 4
    assert result["complete"] is False
    assert result["valid"] is True
    assert result["offset"]["n"] > 0


def test_time_without_samples_is_a_gap(bw_clock: Path) -> None:
    arguments = ("--device", "realtime", "--reference", "tai", "--duration-ms", "60000", "--gap-ms", "400")
    with started(bw_clock, "compare", *arguments, "--series-interval-ms", "50") as process:
        let_work(process)
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: is_stopped(process), "the stop")
        stopped_ns = time.monotonic_ns()
        time.sleep(0.8)
        held_ns = time.monotonic_ns() - stopped_ns
        process.send_signal(signal.SIGCONT)
        let_work(process)
        _, result = finish(process)
    longest_ns = max(gap["to_tai_ns"] - gap["from_tai_ns"] for gap in result["gaps"])
    assert longest_ns >= 0.999 * held_ns  # the kernel slews TAI by half of that at most
    times = [row[0] for row in result["series"]["rows"]]
    assert max(later - earlier for earlier, later in itertools.pairwise(times)) >= 400_000_000


@pytest.mark.parametrize("read", ["sequential", "bracketed", "filtered"])
@pytest.mark.parametrize("offset_ns", [5_000_000, -5_000_000])
def test_plugin_that_is_ahead_is_positive(
    bw_clock: Path, example_clock: Path, read: str, offset_ns: int
) -> None:
    clock = f"plugin:{example_clock},offset_ns={offset_ns},bound_ns=25"
    code, ahead, _ = run(bw_clock, "compare", "--device", clock, "--reference", "tai", "--read", read, *FAST)
    assert code in (0, 4)  # no window may be as short as the filter's default on a slow machine
    assert ahead["device"]["plugin"] == "example"
    assert ahead["device"]["facts"]["serial_number"] == "EXAMPLE-0001"
    if ahead["offset"]["n"]:
        assert abs(ahead["offset"]["p50_ns"] - offset_ns) < abs(offset_ns) / 5
    code, behind, _ = run(bw_clock, "compare", "--device", "tai", "--reference", clock, "--read", read, *FAST)
    if behind["offset"]["n"]:
        assert abs(behind["offset"]["p50_ns"] + offset_ns) < abs(offset_ns) / 5
    assert behind["reference_bound_ns"] == 25


@pytest.mark.parametrize("step_ns", [3_000_000, -700_000_000])
def test_step_is_found(bw_clock: Path, example_clock: Path, step_ns: int) -> None:
    clock = f"plugin:{example_clock},step_ns={step_ns},step_after=1500"
    arguments = ("--device", clock, "--reference", "tai", "--step-threshold-us", "1000", *FAST)
    code, result, _ = run(bw_clock, "compare", *arguments)
    assert code == 0
    (step,) = result["steps"]
    assert abs(step["step_ns"] - step_ns) < abs(step_ns) / 5
    assert result["steps_dropped"] == 0
    before = [
        row
        for row in result["series"]["rows"]
        if row[0] + result["series"]["interval_ns"] < step["time_tai_ns"]
    ]
    after = [row for row in result["series"]["rows"] if row[0] > step["time_tai_ns"]]
    assert all(abs(row[2]) < abs(step_ns) / 2 for row in before)
    assert all(abs(row[2]) > abs(step_ns) / 2 for row in after)


def test_clock_that_fails_in_mid_run(bw_clock: Path, example_clock: Path) -> None:
    clock = f"plugin:{example_clock},fail_after=500"
    code, result, _ = run(bw_clock, "compare", "--device", clock, "--reference", "tai", *FAST)
    assert code == 4
    assert result["valid"] is False
    assert result["complete"] is False
    assert 0 < result["offset"]["n"] < 500  # it is also read to warm up
    assert "device could not be read any more" in result["invalid_reasons"][0]


@pytest.mark.parametrize(
    ("clock", "code", "text"),
    [
        ("sundial", 2, "unknown clock"),
        ("tsc:1", 2, "unknown clock"),
        ("phc", 2, "unknown clock"),
        ("card:", 2, "unknown clock"),
        ("plugin:", 2, "unknown clock"),
        ("plugin:,x=1", 2, "no path"),
        ("plugin:/nowhere/clock.so", 3, "clock.so"),
        ("plugin:libm.so.6", 3, "libm.so.6"),
        ("phc:/dev/ptp99", 3, "no such device"),
        ("phc:/dev/null", 3, "not a PTP hardware clock"),
        ("card:/nowhere/page", 3, "No such file"),
    ],
)
def test_clocks_that_are_not_there(bw_clock: Path, clock: str, code: int, text: str) -> None:
    found, _, errors = run(bw_clock, "compare", "--device", clock, "--reference", "tai")
    assert (found, len(errors.splitlines())) == (code, 1)
    assert text in errors
    found, _, errors = run(bw_clock, "latency", "--clock", clock)
    assert found == code
    assert text in errors


def test_plugin_with_bad_arguments(bw_clock: Path, example_clock: Path) -> None:
    for arguments in ("offset_ns=", "offset_ns=1x", "colour=red", "offset_ns=99999999999999999999"):
        found, _, errors = run(
            bw_clock, "compare", "--device", f"plugin:{example_clock},{arguments}", "--reference", "tai"
        )
        assert found == 2
        assert "no argument of the example" in errors


def test_object_without_the_interface(bw_clock: Path) -> None:
    libm = next(Path("/lib").rglob("libm.so.6"))
    found, _, errors = run(bw_clock, "compare", "--device", f"plugin:{libm}", "--reference", "tai")
    assert found == 3
    assert "bw_clock_plugin" in errors


EARLIER_TABLE = """
#include <stddef.h>
#include "clock/bw_clock_plugin.h"
static int open_it(const char *arguments, void **state, char *error, size_t error_bytes)
{
	(void)arguments; (void)state; (void)error; (void)error_bytes;
	return 0;
}
static int read_it(void *state, int64_t *tai_ns) { (void)state; *tai_ns = 5; return 0; }
static void close_it(void *state) { (void)state; }
const struct bw_clock_plugin *bw_clock_plugin(uint32_t version);
const struct bw_clock_plugin *bw_clock_plugin(uint32_t version)
{
	static struct bw_clock_plugin table = {
		.version = BW_CLOCK_PLUGIN_VERSION, .size_bytes = SIZE_BYTES, .name = "other",
		.open = open_it, .read = read_it, .close = close_it,
	};
	(void)version;
	return &table;
}
"""


@pytest.mark.parametrize(
    ("size_bytes", "code"),
    [
        ("sizeof(table)", 0),
        ("sizeof(table) + 64", 0),
        ("offsetof(struct bw_clock_plugin, close)", 3),
        ("0", 3),
    ],
)
def test_tables_of_other_headers(
    bw_clock: Path, repository: Path, tmp_path: Path, size_bytes: str, code: int
) -> None:
    """A later header's table is longer; one without all that every version has is incomplete."""
    source, plugin = tmp_path / "other.c", tmp_path / "other.so"
    source.write_text(EARLIER_TABLE.replace("SIZE_BYTES", size_bytes))
    include = repository / "traffic-gen"
    subprocess.run(["cc", "-shared", "-fPIC", "-I", include, "-o", plugin, source], check=True)
    found, _, errors = run(bw_clock, "latency", "--clock", f"plugin:{plugin}", "--reads", "100")
    assert found == code, errors
    assert ("table is incomplete" in errors) == (code == 3)


@pytest.mark.parametrize("processor", ["cortex-a8", "cortex-a9", "cortex-a15"])
def test_a_processor_without_a_counter_is_told_not_fatal(arm_bw_clock: Path, processor: str) -> None:
    """Cortex-A8 and A9 have none, and QEMU lets programs read none: SIGILL once ended the tool."""
    emulator = shutil.which("qemu-arm")
    if emulator is None:
        pytest.skip("qemu-arm is not installed")
    for arguments in (
        ("latency", "--clock", "realtime"),
        ("compare", "--device", "tsc", "--reference", "realtime"),
    ):
        done = subprocess.run(
            [emulator, "-cpu", processor, arm_bw_clock, *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 3, done.stderr
        assert "no counter that a program can read" in done.stderr


@pytest.mark.timed
def test_a_stop_is_heard_in_a_long_pause(bw_clock: Path) -> None:
    """Pauses of up to 4 s lie between readings; only the main thread is woken by a signal."""
    argv = [bw_clock, "compare", "--device", "tai", "--reference", "monotonic-raw", "--iterations", "1000000"]
    for _ in range(4):
        process = subprocess.Popen([*argv, "--pause-max-us", "4000000"], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.3)
        begin_s = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
        assert process.wait(HANG_S) == 4
        assert time.monotonic() - begin_s < 1.0


def test_static_build_loads_no_plugins(static_bw_clock: Path, example_clock: Path) -> None:
    found, _, errors = run(
        static_bw_clock, "compare", "--device", f"plugin:{example_clock}", "--reference", "tai"
    )
    assert found == 3
    assert "linked statically" in errors


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_without_permission(bw_clock: Path, open_folder: Path) -> None:
    program = Path(shutil.copy(bw_clock, open_folder))
    secret = open_folder / "secret"
    secret.write_bytes(bytes(4096))
    secret.chmod(0)
    for clock in (f"phc:{secret}", f"card:{secret}"):
        code, _, errors = run(program, "compare", "--device", clock, "--reference", "tai", user=65534)
        assert code == 3
        assert "ermission" in errors


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "--device is missing"),
        (["--device", "tai"], "--reference is missing"),
        (
            ["--device", "tai", "--reference", "realtime", "--read", "sideways"],
            "sequential bracketed filtered",
        ),
        (
            ["--device", "tai", "--reference", "realtime", "--phc-read", "often"],
            "precise extended basic auto",
        ),
        (["--device", "tai", "--reference", "realtime", "--phc-read", "basic"], "only for a pair of phc"),
        (["--device", "tai", "--reference", "realtime", "--phc-read", "gettime"], "only for a pair of phc"),
        (["--device", "tai", "--reference", "realtime", "--iterations", "0"], "out of range"),
        (["--device", "tai", "--reference", "realtime", "--pause-max-us", "-1"], "out of range"),
        (["--device", "tai", "--reference", "realtime", "--gap-ms", "soon"], "not a number"),
        (["--device", "tai", "--reference", "realtime", "--colour"], "unknown option"),
        (["tai", "realtime"], "surplus argument"),
    ],
)
def test_bad_options(bw_clock: Path, arguments: list[str], text: str) -> None:
    code, result, errors = run(bw_clock, "compare", *arguments)
    assert (code, result) == (2, {})
    assert text in errors


def run_text(program: Path, arguments: list[str]) -> str:
    """Return what a successful run prints."""
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=True).stdout


def test_help_and_versions(bw_clock: Path) -> None:
    for arguments in (["--help"], ["compare", "--help"], ["latency", "--help"], ["card", "--help"]):
        done = run_text(bw_clock, arguments)
        assert done.startswith("usage: bw-clock")
    assert run_text(bw_clock, ["--version"]).startswith("bw-clock ")
    assert run(bw_clock, "dance")[0] == 2
    assert run(bw_clock, "card", "dance")[0] == 2


def test_latency_of_each_clock(bw_clock: Path, example_clock: Path) -> None:
    code, result, _ = run(
        bw_clock, "latency", "--clock", "tsc,realtime,realtime-coarse",
        "--clock", f"plugin:{example_clock},offset_ns=1", "--reads", "20000",
    )  # fmt: skip
    assert code == 0
    names = [clock["name"] for clock in result["clocks"]]
    assert names == ["tsc", "realtime", "realtime-coarse", f"plugin:{example_clock},offset_ns=1"]
    for clock in result["clocks"]:
        assert clock["n"] == clock["latency"]["n"] == clock["net"]["n"] == 20000
        blocks, counting = clock["blocks"], clock["kept"] or clock["latency"]
        assert blocks["size"] <= 32
        assert len(blocks["means_ns"]) == counting["n"] // blocks["size"] < 1024
        assert 0 < clock["latency"]["min_ns"] <= clock["latency"]["p50_ns"] <= clock["latency"]["max_ns"]
        assert clock["net"]["p50_ns"] < clock["latency"]["p50_ns"]
        if clock["interrupted"] is None:
            assert clock["kept"] is None
            assert "not counted" in str(result["interrupted_reason"])
        else:
            assert clock["kept"]["n"] + clock["interrupted"] == clock["n"]
            assert result["interrupted_reason"] is None
    assert result["tsc_hz"] > 10**6


def test_latency_ends_when_the_time_of_a_clock_is_over(bw_clock: Path) -> None:
    code, result, _ = run(
        bw_clock, "latency", "--clock", "tai,realtime", "--reads", "10000000000", "--duration-ms", "50"
    )
    assert code == 0
    assert result["complete"]
    assert all(256 <= clock["n"] < 10**10 for clock in result["clocks"])
    assert result["clocksource"]
    assert [clock["phc_read"] for clock in result["clocks"]] == [None, None]


@pytest.mark.parametrize("way", ["basic", "extended", "precise"])
def test_only_a_phc_is_read_by_cross_stamps(bw_clock: Path, way: str) -> None:
    code, _, errors = run(bw_clock, "latency", "--clock", "tai", "--phc-read", way)
    assert (code, "only for phc" in errors) == (2, True)


def test_an_unknown_way_to_read_a_phc(bw_clock: Path) -> None:
    code, _, errors = run(bw_clock, "latency", "--clock", "tai", "--phc-read", "slowly")
    assert code == 2
    assert 'unknown "slowly"; allowed: precise extended basic gettime' in errors


def test_latency_needs_a_clock(bw_clock: Path) -> None:
    assert run(bw_clock, "latency")[0] == 2
    assert run(bw_clock, "latency", "--clock", "tai", "--reads", "0")[0] == 2
    assert run(bw_clock, "latency", "--clock", "tsc", "--cost")[0] == 2


def test_cost_of_a_recorded_reading(bw_clock: Path) -> None:
    code, result, _ = run(bw_clock, "latency", "--clock", "realtime", "--cost", "--reads", "100000")
    assert code == 0
    assert result["n"] >= 100_000
    assert 0 < result["bare_ns"] < result["recorded_ns"] * 2
