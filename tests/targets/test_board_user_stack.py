# SPDX-License-Identifier: Apache-2.0
"""The user-mode stack on a virtual ARM board: programs with time of 32 bits, and with 64."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from hw.protocols import Job
from hw.provisioning import TARGETS
from hw.session import Bench, open_bench
from hw.tools import local_tool
from resources.network_stack import load_network_stack
from resources.network_stack_ends import network_stack_on
from resources.tools.experiment import last_result
from tests.patience import HANG_S
from tests.targets.test_board import BENCH, BOARD
from tests.turns import in_turn

pytestmark = [pytest.mark.simulated, pytest.mark.slow]

SOURCE = Path(__file__).parent / "userstack" / "two_times.c"
COMPILER = ("arm-linux-gnueabihf-gcc", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror")
FORMS = {32: (), 64: ("-D_TIME_BITS=64", "-D_FILE_OFFSET_BITS=64")}
PEER, PORT = "10.77.0.254", 7007
ECHO = f"""
import socket
here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
here.bind(("{PEER}", {PORT}))
print('{{"type":"ready"}}', flush=True)
while True:
    here.sendto(*here.recvfrom(2048))
"""
DATAGRAMS = 5
"""Of the program."""


STREAM_BYTES, STREAM_PORT = 2_000_000, 7008


@pytest.fixture(scope="module")
def bench() -> Generator[Bench]:
    """Boot the board."""
    with in_turn("one-board"), open_bench(BENCH) as opened:
        opened.power_on([BOARD])
        yield opened


@pytest.fixture
def echo(bench: Bench, tmp_path: Path) -> Generator[Job]:
    """Send back on the test network what comes."""
    switch = bench.node("switch")
    switch.run(["ip", "address", "replace", f"{PEER}/24", "dev", "br-test"])
    switch.run(["ethtool", "-K", "br-test", "tx", "off"])  # the stack gets what is there: sums, too
    job = switch.start([sys.executable, "-c", ECHO], tmp_path / "echo")
    job.wait_ready(HANG_S)
    yield job
    job.stop()
    job.wait(HANG_S)


def compiled(bench: Bench, folder: Path, time_bits: int) -> str:
    """Return the path on the board of the program."""
    program = folder / f"two-times-{time_bits}"
    subprocess.run([*COMPILER, *FORMS[time_bits], "-o", program, SOURCE], check=True)
    return bench.node(BOARD).bring(program)


@pytest.mark.parametrize("time_bits", FORMS)
def test_calls_do_what_they_say_by_either_stack(
    bench: Bench, echo: Job, tmp_path: Path, time_bits: int
) -> None:
    node, program = bench.node(BOARD), compiled(bench, tmp_path, time_bits)
    stack = load_network_stack(TARGETS / "linux-rt", "user")
    library = bench.library(BOARD, stack.preload[0])
    assert node.run([program]).stdout == f"{time_bits}\n"
    assert stack.proof is not None
    with network_stack_on(stack, bench, BOARD, {BOARD: "test0"}, tmp_path):
        loaded = [f"{name}={value}" for name, value in stack.environment.items()]
        loaded = ["env", f"LD_PRELOAD={library}", *stack.words_on(bench, BOARD, loaded)]
        show = [bench.tool(BOARD, stack.proof.tool), *stack.words_on(bench, BOARD, stack.proof.arguments)]
        for peer in ([], [PEER, str(PORT)]):
            done = node.run([*loaded, program, *peer], timeout_s=HANG_S, check=False)
            assert (done.exit_code, done.stdout) == (0, f"{time_bits}\n"), done.stderr
            frames = json.loads(node.run(show).stdout)["frames"]
            assert (frames["in"], frames["out"]) == ((DATAGRAMS,) * 2 if peer else (0, 0))


def test_a_program_is_started_by_it(bench: Bench, echo: Job, tmp_path: Path) -> None:
    """What knows nothing of the stack, started by bw-accel, sends a stream, and a kernel has all of it."""
    node, switch = bench.node(BOARD), bench.node("switch")
    stack = load_network_stack(TARGETS / "linux-rt", "user")
    assert stack.proof is not None
    launcher = node.bring(local_tool("bw-accel", "armv7l", dynamic=True))
    place, patient = f"{PEER}:{STREAM_PORT}", ["--timeout-ms", str(round(HANG_S * 1000))]
    serve = [bench.tool("switch"), "bulk", "--serve", place, *patient]
    server = switch.start(serve, tmp_path / "bulk")
    server.wait_ready(HANG_S)
    with network_stack_on(stack, bench, BOARD, {BOARD: "test0"}, tmp_path):
        given = ["--library", bench.library(BOARD, stack.preload[0]), "--socket", "$folder/stackd.sock"]
        client = [bench.tool(BOARD, dynamic=True), "bulk", "--peer", place, "--bytes", str(STREAM_BYTES)]
        words = stack.words_on(bench, BOARD, [launcher, *given, "--", *client, *patient])
        done = node.run(words, timeout_s=HANG_S, check=False)
        assert done.exit_code == 0, done.stdout + done.stderr
        show = [bench.tool(BOARD, stack.proof.tool), *stack.words_on(bench, BOARD, stack.proof.arguments)]
        frames = json.loads(node.run(show).stdout)["frames"]
    assert server.wait(HANG_S) == 0
    sent, received = json.loads(done.stdout.splitlines()[-1]), last_result(server.fetch())
    assert (sent["bytes"], sent["checksum"]) == (STREAM_BYTES, received["checksum"])
    assert frames["bytes_out"] > STREAM_BYTES
