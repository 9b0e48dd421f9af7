# SPDX-License-Identifier: Apache-2.0
"""The time service's library from outside: bw-clock's clock, the package for Python, what is exported."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import HANG_S, wait_until
from tests.traffic_gen.clock.clock_page import ENOUGH_NS, finish, let_work, run, started
from tests.traffic_gen.timeservice_page import service

PACKAGE = Path("traffic-gen", "timeservice", "python")
LIBRARY = Path("traffic-gen", "timeservice", "libbwtime.so")
FAST = ("--iterations", "3000", "--pause-max-us", "20")
FUNCTIONS = {
    "bwtime_abi_version", "bwtime_accept_step", "bwtime_close", "bwtime_condition", "bwtime_difference",
    "bwtime_from_ticks", "bwtime_gettime", "bwtime_last_step_ns", "bwtime_now", "bwtime_now_ns",
    "bwtime_now_ntp", "bwtime_now_tai_ns", "bwtime_open", "bwtime_past", "bwtime_publications",
    "bwtime_result_name", "bwtime_stamps", "bwtime_ticks", "bwtime_why",
}  # fmt: skip


@pytest.fixture
def build(repository: Path, bw_clock: Path) -> Path:
    del bw_clock
    return repository / ".build" / "linux"


# ---- bw-clock ----------------------------------------------------------------------------------------------


def test_bounds_of_readings_are_checked(bw_clock: Path, build: Path, tmp_path: Path) -> None:
    with service(build, tmp_path / "page", "0", "10000000") as made:
        code, result, _ = run(bw_clock, "compare", "--device", made.clock, "--reference", "realtime", *FAST)
    assert code == 0
    bound = result["device_bound"]
    assert bound["bound_checked"] == bound["bound"]["n"] == result["offset"]["n"] == 3000
    assert (bound["bound_missed"], bound["bound_missed_beyond_window"], bound["without_bound"]) == (0, 0, 0)
    assert 10_000_000 <= bound["bound"]["p50_ns"] < 11_000_000
    assert bound["u_missed"] == bound["u_missed_beyond_window"] == 0
    assert 5_000_000 <= bound["u"]["p50_ns"] < 5_500_000
    device = result["device"]
    assert (device["kind"], device["state"], device["epoch"]) == ("timeservice", "synchronised", 0)
    assert device["bound_ns"] >= bound["bound"]["max_ns"]
    assert device["publications"] >= 1
    assert (device["tai_utc_s"], device["tai_utc_of_service"]) == (37, True)


def test_bounds_that_do_not_hold_are_counted(bw_clock: Path, build: Path, tmp_path: Path) -> None:
    # 1 s ahead, and says 50 us: no reading of a busy machine explains that.
    with service(build, tmp_path / "page", "1000000000", "50000") as made:
        code, result, _ = run(bw_clock, "compare", "--device", made.clock, "--reference", "realtime", *FAST)
    assert code == 0
    assert result["device_bound"]["bound_missed"] == 3000
    assert result["device_bound"]["bound_missed_beyond_window"] == 3000


def test_other_clocks_state_no_bound(bw_clock: Path) -> None:
    _, result, _ = run(bw_clock, "compare", "--device", "realtime", "--reference", "tai", *FAST)
    assert result["device_bound"] is None


def test_withdrawn_time_gives_no_samples(bw_clock: Path, build: Path, tmp_path: Path) -> None:
    with service(build, tmp_path / "page", "0", "10000000") as made:
        clocks = ("--device", made.clock, "--reference", "realtime")

        def has_gone() -> bool:
            # With an end: one that found the time still there, and then none, waits for it to come back.
            code, result, _ = run(bw_clock, "compare", *clocks, "--iterations", "1", "--duration-ms", "500")
            return code != 0 or result["iterations"] == 0

        # Short pauses: CPU time is what the test waits for, and a reading without a time takes hardly any.
        with started(
            bw_clock, "compare", *clocks, "--duration-ms", "600000", "--pause-max-us", "20"
        ) as process:
            let_work(process, 20 * ENOUGH_NS)
            made.tell("withdraw")
            wait_until(has_gone, "the end of the time")
            let_work(process, 20 * ENOUGH_NS)
            code, result = finish(process)
    assert code == 4, "ended by a signal"
    assert result["device_bound"]["without_bound"] > 100
    assert result["device_bound"]["bound_checked"] == result["iterations"] > 100
    assert result["device_bound"]["bound_missed"] == 0


def test_a_killed_service_leaves_its_time(bw_clock: Path, build: Path, tmp_path: Path) -> None:
    page = tmp_path / "page"
    with service(build, page, "0", "10000000") as made:
        pass
    code, result, _ = run(bw_clock, "compare", "--device", made.clock, "--reference", "realtime", *FAST)
    assert code == 0
    assert result["device_bound"]["bound_missed"] == 0
    # Its successor goes on where it was killed.
    before = result["device"]["publications"]
    with service(build, page, "0", "10000000"):
        _, result, _ = run(bw_clock, "compare", "--device", made.clock, "--reference", "realtime", *FAST)
    assert result["device"]["publications"] > before


def test_no_service_is_a_missing_capability(bw_clock: Path, tmp_path: Path) -> None:
    code, _, said = run(bw_clock, "latency", "--clock", f"timeservice:{tmp_path}/page")
    assert code == 3
    assert "no service" in said
    (tmp_path / "page").write_bytes(b"x" * 65536)
    code, _, said = run(bw_clock, "latency", "--clock", f"timeservice:{tmp_path}/page")
    assert code == 3
    assert "no page of the time service" in said


def test_latency_has_a_row(bw_clock: Path, build: Path, tmp_path: Path) -> None:
    with service(build, tmp_path / "page", "0", "10000000") as made:
        code, result, _ = run(bw_clock, "latency", "--clock", f"tsc,{made.clock}", "--reads", "5000")
    assert code == 0
    assert [clock["n"] for clock in result["clocks"]] == [5000, 5000]


# ---- the library -------------------------------------------------------------------------------------------


def _exports(library: Path) -> set[str]:
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True
    )
    return {line.split()[-1] for line in listing.stdout.splitlines()}


def test_library_exports_its_interface_alone(repository: Path, build: Path) -> None:
    assert _exports(build / LIBRARY) == FUNCTIONS
    header = (repository / "traffic-gen" / "timeservice" / "bwtime.h").read_text()
    assert header.count("\nBWTIME_API ") == len(FUNCTIONS)
    assert all(f"{name}(" in header for name in FUNCTIONS)
    definition = (repository / "traffic-gen" / "timeservice" / "bwtime.def").read_text()
    assert {line.strip() for line in definition.splitlines() if line.startswith("\t")} == FUNCTIONS
    arm = repository / ".build" / "armhf" / LIBRARY
    if arm.exists():
        assert _exports(arm) == FUNCTIONS
    dll = repository / ".build" / "win" / LIBRARY.with_name("bwtime.dll")
    if dll.exists() and shutil.which("x86_64-w64-mingw32-objdump"):
        listing = subprocess.run(
            ["x86_64-w64-mingw32-objdump", "-p", dll], check=True, capture_output=True, text=True
        )
        names = listing.stdout.partition("[Ordinal/Name Pointer] Table")[2].splitlines()
        assert {line.split()[-1] for line in names if "] " in line and "bwtime_" in line} == FUNCTIONS
        assert f"{len(FUNCTIONS):08x}" in listing.stdout.partition("Number in:")[2][:200]


@pytest.mark.parametrize(
    ("compiler", "language", "standard"),
    [("gcc", "c", "c99"), ("g++", "c++", "c++11"), ("clang", "c", "c99")],
)
def test_header_is_plain(
    repository: Path, tmp_path: Path, compiler: str, language: str, standard: str
) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    source = tmp_path / "user.txt"
    source.write_text('#include "bwtime.h"\nint main(void) { return bwtime_open(0, BWTIME_ORDERED, 0); }\n')
    subprocess.run(
        [
            *(compiler, "-x", language, f"-std={standard}", "-Wall", "-Wextra", "-pedantic", "-Werror"),
            *("-fsyntax-only", "-I", repository / "traffic-gen" / "timeservice", source),
        ],
        check=True,
    )


# ---- Python ------------------------------------------------------------------------------------------------

USE = """
import sys, time
import bwtime
from bwtime import Clock, Flag
assert bwtime.__file__.startswith(sys.argv[2]), bwtime.__file__
with Clock(sys.argv[1]) as clock, Clock(sys.argv[1], Flag.TELL_STEPS) as telling:
    before_ns = time.time_ns()
    stamp = clock.now()
    assert before_ns - 10**9 < stamp.utc_ns < time.time_ns() + 10**9, stamp
    assert stamp.bound_ns >= 50_000 and stamp.state == bwtime.State.SYNCHRONISED and not stamp.stepped
    assert stamp.utc_ns <= clock.now_ns() <= clock.now_tai_ns() - 37 * 10**9
    seconds = (clock.now_ntp() >> 32) - 2208988800
    assert stamp.utc_ns // 10**9 <= seconds <= clock.now_ns() // 10**9
    before_ns, ticks, after_ns = clock.now_ns(), Clock.ticks(), clock.now_ns()
    then, = clock.from_ticks([ticks])
    assert before_ns - 10**9 < then.utc_ns < after_ns + 10**9
    apart_ns, apart_bound_ns = clock.difference_ns(ticks, Clock.ticks())
    assert 0 < apart_ns < 10**10 and apart_bound_ns < 10**6
    stamped_ns = time.time_ns()  # the page follows this very clock
    past = clock.past(stamped_ns)
    assert abs(past.utc_ns - stamped_ns) <= past.bound_ns < 10**7, (past, stamped_ns)
    assert past.earliest_utc_ns <= stamped_ns <= past.latest_utc_ns
    for wrong_ns in (stamped_ns - 2 * 10**9, stamped_ns + 10**9):
        try:
            clock.past(wrong_ns)
        except bwtime.BwtimeError as error:
            assert error.result == -22, error
        else:
            raise AssertionError(wrong_ns)
    condition = clock.condition()
    assert condition.heard_utc_ns <= clock.now_ns() < condition.valid_until_utc_ns
    assert condition.disruptions == 0 and condition.state == bwtime.State.SYNCHRONISED
    many = clock.stamps(100)
    assert all(a.utc_ns <= b.utc_ns for a, b in zip(many, many[1:]))
    before = telling.now().utc_ns
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        while True:
            clock.now()
    except bwtime.SteppedError as error:
        assert "stepped" in str(error)
    assert clock.last_step_ns == -5 * 10**9
    clock.accept_step()
    assert clock.now_ns() < before
    while not telling.now().stepped:
        pass
    print("stepped", flush=True)
    sys.stdin.readline()
    try:
        while True:
            clock.now()
    except bwtime.NotSynchronisedError as error:
        assert "contradicts" in str(error)
for _ in range(50):
    try:
        Clock(sys.argv[1]).now()  # dropped
    except bwtime.NotSynchronisedError:
        pass
mapped = [line for line in open("/proc/self/maps") if line.rstrip().endswith(sys.argv[1])]
assert not mapped, mapped
with Clock(sys.argv[1] + "x") as clock:
    try:
        clock.now()
    except bwtime.NoServiceError as error:
        assert error.result == bwtime.Result.NO_SERVICE
    else:
        raise AssertionError
"""


def _use(build: Path, folder: Path, page: Path, environment: dict[str, str]) -> None:
    """Run USE with the package of a folder, while the service steps its time, then has none."""
    with service(build, page, "0", "50000") as made:
        process = subprocess.Popen(
            [sys.executable, "-c", USE, page, folder],
            env={**os.environ, "PYTHONPATH": str(folder), **environment},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdin
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        made.tell("step -5000000000")
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "stepped\n"
        made.tell("withdraw")
        process.communicate("\n", timeout=HANG_S)
        assert process.returncode == 0


def test_package(repository: Path, build: Path, tmp_path: Path) -> None:
    _use(build, repository / PACKAGE, tmp_path / "page", {"BWTIME_LIBRARY": str(build / LIBRARY)})


def test_wheel(repository: Path, build: Path, tmp_path: Path) -> None:
    uv = repository / ".build" / "uv" / "bin" / "uv"
    wheels, target = tmp_path / "wheels", tmp_path / "target"
    environment = {
        **os.environ,
        "BWTIME_LIBRARY": str(build / LIBRARY),
        "UV_CACHE_DIR": str(tmp_path / "cache"),
    }
    python = ("--offline", "--python", sys.executable)
    build_wheel = [uv, "build", *python, "--wheel", "--out-dir", wheels, repository / PACKAGE]
    subprocess.run(build_wheel, check=True, env=environment)
    (wheel,) = wheels.glob("bwtime-*.whl")
    assert wheel.name.endswith(".whl")
    assert "py3-none-linux" in wheel.name
    install = [uv, "pip", "install", *python, "--no-deps", "--target", target, wheel]
    subprocess.run(install, check=True, env=environment)
    assert (target / "bwtime" / "libbwtime.so").read_bytes() == (build / LIBRARY).read_bytes()
    _use(build, target, tmp_path / "page", {})


def test_wheel_needs_its_library(repository: Path, tmp_path: Path) -> None:
    backend = "import bwtime_build, sys; bwtime_build.build_wheel(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", backend, tmp_path],
        cwd=repository / PACKAGE, env={**os.environ, "BWTIME_LIBRARY": str(tmp_path / "libbwtime.so")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "no such library" in done.stderr
    assert list(tmp_path.iterdir()) == []
