# SPDX-License-Identifier: Apache-2.0
"""RTDiP under PREEMPT_RT: whoever wakes its receivers up must not be below what competes with them."""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hw.drivers.labgrid_api import register_all
from hw.protocols import Job
from hw.provisioning import TARGETS
from hw.session import Bench, open_bench
from resources.network_stack import NetworkStack, load_network_stack
from resources.network_stack_ends import network_stack_on
from tests.patience import HANG_S

GUEST, PEER = "guest", "p01"
BENCH_FILE = Path(__file__).parents[1] / "one_guest.yaml"
ECHO_PORT = 7000
TRIPS, INTERVAL_US = 800, 5000
TIMEOUT_MS = 500
"""A reply after that is late: what a receiver waits for at most before it looks again."""
pytestmark = [pytest.mark.simulated, pytest.mark.slow]

register_all()


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Generator[Bench]:
    """A guest with a fully preemptible kernel, and a producer."""
    file = tmp_path_factory.mktemp("bench") / "bench.yaml"
    text = BENCH_FILE.read_text().replace("image: embedded", "image: linux-rt")
    text = text.replace("name: one-guest", "name: guest-of-rtdip")
    text = text.replace(
        "    guest: {kind: labgrid",
        "    p01: {kind: namespace, clock: host, priority: 50}\n    guest: {kind: labgrid",
    )
    file.write_text(text.replace("producers: {}", "producers:\n    1: {node: p01, address: 10.77.0.1}"))
    with open_bench(file) as bench:
        bench.power_on([GUEST])
        yield bench


@dataclass(frozen=True)
class Ends:
    """The services of both ends, and an echo at the producer's."""

    bench: Bench
    stack: NetworkStack
    peer_mac: str

    def trips(self, hog: str = "") -> dict[str, Any]:
        """Time round trips from the guest; meanwhile a program there takes its processor.

        All that is needed is in memory by then: whoever starts a program beside the hog waits for its end.
        """
        tool = self.bench.tool(GUEST, "bw-rtdip")
        trips = (
            f"{tool} latency --peer {self.peer_mac}/{ECHO_PORT} --count {TRIPS} --interval-us {INTERVAL_US}"
            f" --timeout-ms {TIMEOUT_MS} --priority 50 --socket {self.stack.folder_on(GUEST)}/rtdip.sock"
        )
        script = (
            f"{trips} >/run/trips & trips=$!; sleep 1; {hog} wait $trips; code=$?; cat /run/trips; exit $code"
        )
        # The shell itself is above the hog.
        argv = ["chrt", "-f", "60", "sh", "-c", script]
        done = self.bench.node(GUEST).run(argv, timeout_s=HANG_S, check=False)
        assert done.exit_code in (0, 4), done.stderr
        return json.loads(done.stdout.splitlines()[-1])


def ends_on(bench: Bench, stack: NetworkStack, folder: Path) -> Generator[Ends]:
    """Put the stack on both ends, with an echo at the producer's."""
    interfaces = {GUEST: "test0", PEER: ""}
    with network_stack_on(stack, bench, GUEST, interfaces, folder):
        shown = bench.node(PEER).run(
            [bench.tool(PEER, "bw-rtdip"), "show", "--socket", f"{stack.folder_on(PEER)}/rtdip.sock"]
        )
        argv = [bench.tool(PEER, "bw-rtdip"), "echo", "--local", str(ECHO_PORT), "--priority", "50"]
        argv += ["--socket", f"{stack.folder_on(PEER)}/rtdip.sock"]
        echo = bench.node(PEER).start(argv, folder / "echo")
        echo.wait_ready(HANG_S)
        try:
            yield Ends(bench, stack, json.loads(shown.stdout)["mac"])
        finally:
            echo.stop()
            echo.wait(HANG_S)


HOG = "chrt -f 2 sh -c 'i=0; while [ $i -lt 80000 ]; do i=$((i + 1)); done' &"
"""It counts: timers run in threads of SCHED_FIFO 1, which it starves as well: none could end it."""


def test_a_hog_above_the_kernels_wake_ups_starves_receivers_unless_they_are_raised(
    bench: Bench, tmp_path: Path
) -> None:
    raised = load_network_stack(TARGETS / "linux-rt", "rtdip")
    as_found = NetworkStack(
        "rtdip", raised.path, arguments=raised.arguments, endpoints=raised.endpoints, service=raised.service
    )
    found: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    for name, stack in (("as found", as_found), ("raised", raised)):
        (tmp_path / name).mkdir()
        for ends in ends_on(bench, stack, tmp_path / name):
            found[name] = ends.trips(), ends.trips(HOG)
    assert [found[name][0]["lost"] for name in found] == [0, 0], "alone each reply comes in time"
    assert found["as found"][1]["lost"] > 0, "the hog has kept the receiver asleep for longer than it waits"
    assert found["raised"][1]["lost"] == 0


BETWEEN = "chrt -f 30 sh -c 'i=0; while [ $i -lt 150000 ]; do i=$((i + 1)); done'"
"""It takes the processor for more than a second from all that is below it."""


def test_priorities_of_two_receivers_swapped_while_they_run_change_places(
    bench: Bench, tmp_path: Path
) -> None:
    """Receive work follows the priority that a process has at the time, whatever it had before."""
    stack = load_network_stack(TARGETS / "linux-rt", "rtdip")
    guest, peer = bench.node(GUEST), bench.node(PEER)
    tools = {node: bench.tool(node, "bw-rtdip") for node in (GUEST, PEER)}
    sockets = {node: f"{stack.folder_on(node)}/rtdip.sock" for node in (GUEST, PEER)}
    priorities = {7001: 50, 7002: 10}
    with network_stack_on(stack, bench, GUEST, {GUEST: "test0", PEER: ""}, tmp_path):
        mac = json.loads(guest.run([tools[GUEST], "show", "--socket", sockets[GUEST]]).stdout)["mac"]
        echoes: dict[int, Job] = {}
        for port, priority in priorities.items():
            argv = [tools[GUEST], "echo", "--local", str(port), "--priority", str(priority)]
            echoes[port] = guest.start([*argv, "--socket", sockets[GUEST]], tmp_path / f"echo-{port}")
            echoes[port].wait_ready(HANG_S)

        def lost_beside_a_hog(port: int, name: str) -> int:
            hog = guest.start(["sh", "-c", f'echo \'{{"type":"ready"}}\'; {BETWEEN}'], tmp_path / name)
            hog.wait_ready(HANG_S)
            argv = [tools[PEER], "latency", "--peer", f"{mac}/{port}", "--count", "100"]
            argv += ["--interval-us", "7000", "--timeout-ms", "300", "--socket", sockets[PEER]]
            done = peer.run([*argv, "--local", "0"], timeout_s=HANG_S)
            hog.wait(HANG_S)
            return int(json.loads(done.stdout.splitlines()[-1])["lost"])

        try:
            before = {port: lost_beside_a_hog(port, f"before-{port}") for port in priorities}
            for port, priority in zip(priorities, reversed(priorities.values()), strict=True):
                argv = ["pgrep", "-f", f"^{tools[GUEST]} echo --local {port} "]
                for pid in guest.run(argv).stdout.split():
                    guest.run(["chrt", "-a", "-f", "-p", str(priority), pid])
            after = {port: lost_beside_a_hog(port, f"after-{port}") for port in priorities}
        finally:
            for echo in echoes.values():
                echo.stop()
                echo.wait(HANG_S)
    assert (before[7001], after[7002]) == (0, 0), "above the hog no reply is late"
    assert min(before[7002], after[7001]) >= 2, "below it those of more than half a second are"
