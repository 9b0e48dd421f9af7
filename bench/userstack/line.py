# SPDX-License-Identifier: Apache-2.0
"""A line between two namespaces over a third one, which loses, doubles and disorders frames from a seed."""

from __future__ import annotations

import json
import signal
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.lab.compiler import compile_c
from bench.lab.namespaces import Json, Namespaces, Program, receiver_cpu, sender_cpu
from bench.lab.pair import CONSUMER as RECEIVER_ADDRESS
from bench.lab.pair import producer_address
from bench.lab.report import REPOSITORY
from hw.virtual.host import machine_settings
from hw.virtual.network import PRODUCER_SYSCTLS, run, set_sysctls

BUILD = REPOSITORY / ".build" / "linux" / "targets" / "linux" / "userstack"
DROP = BUILD.parent / "line" / "bw-drop"
SERVICE, ACCEL = BUILD / "service" / "bw-stackd", BUILD / "accel" / "bw-accel"
HERE = Path(__file__).parent
KERNEL, KERNEL_BBR, USER, USER_BBR = "kernel", "kernel-bbr", "user", "user-bbr"
"""The kernel's stack by cubic, by BBR, and the user-mode stack by both."""
CONTROL_KEY = "net.ipv4.tcp_congestion_control"
CONGESTION_CONTROL, BBR = PRODUCER_SYSCTLS[CONTROL_KEY], "bbr"
PRODUCERS = 12
"""Of the pattern that is replayed over it: so many addresses the sender has."""


class Line(Namespaces):
    """A sender, a receiver, what lies between them, and a service of the user-mode stack at both ends."""

    def __init__(self, *, direct: bool = False) -> None:
        """Make nothing yet; `direct`: the two ends are joined by a link, with nothing between them."""
        super().__init__("smr")
        self._direct = direct
        self.sender, self.middle, self.receiver = self.names.values()

    def _join(self) -> None:
        self._around.enter_context(machine_settings(f"{CONGESTION_CONTROL} {BBR}"))
        self._compile()
        for namespace in self.names.values():
            set_sysctls(namespace, PRODUCER_SYSCTLS)
        if self._direct:
            self.link("s", "s0", "r", "r0")
        else:
            self.link("s", "s0", "m", "ms")
            self.link("r", "r0", "m", "mr")
        producers = [f"{producer_address(number)}/16" for number in range(1, PRODUCERS + 1)]
        ends = {("s", "s0"): producers, ("r", "r0"): [f"{RECEIVER_ADDRESS}/16"]}
        ports = [] if self._direct else [("m", "ms"), ("m", "mr")]
        for place, interface in [*ends, *ports]:
            self.set_up(place, interface, *ends.get((place, interface), []))
            self.offloads_off(place, interface)
        for namespace, interface in ((self.sender, "s0"), (self.receiver, "r0")):
            self._serve(namespace, interface)

    def _compile(self) -> None:
        self.stream = compile_c(HERE / "stream.c", self.folder / "stream")
        self._disorder = compile_c(HERE / "disorder.c", self.folder / "disorder")
        self._delay = compile_c(HERE / "delay.c", self.folder / "delay", "-D_GNU_SOURCE")

    def _serve(self, namespace: str, interface: str) -> None:
        argv = [str(SERVICE), "serve", "--interface", interface, "--socket", str(self.socket(namespace))]
        self.start(namespace, argv, name=f"service-{interface}").wait_text('"ready"')

    def socket(self, namespace: str) -> Path:
        """Return the socket of an end's service."""
        return self.folder / f"{namespace}.sock"

    def start_by(
        self,
        namespace: str,
        stack: str,
        argv: Sequence[str],
        name: str,
        *,
        busy_poll_us: int = 0,
        priority: int = 0,
    ) -> Program:
        """Start a program at an end by a stack, on that end's CPU.

        Args:
            namespace: The sender's or the receiver's.
            stack: KERNEL, KERNEL_BBR, USER or USER_BBR.
            argv: Of the program.
            name: Of its answer's file.
            busy_poll_us: Of the user-mode stack.
            priority: SCHED_FIFO; 0: as it comes.
        """
        cpu = sender_cpu() if namespace == self.sender else receiver_cpu()
        words: list[str] = []
        control = BBR if stack == KERNEL_BBR else CONGESTION_CONTROL
        set_sysctls(namespace, {CONTROL_KEY: control})  # a socket has what its namespace had when it was made
        if stack in {USER, USER_BBR}:
            options = ["--busy-poll-us", str(busy_poll_us)] if busy_poll_us else []
            options += ["--congestion", "bbr"] if stack == USER_BBR else []
            words = [str(ACCEL), "--socket", str(self.socket(namespace)), *options, "--"]
        return self.start(namespace, [*words, *argv], cpu, priority, name)

    @contextmanager
    def joined(
        self, duplicate_ppm: int = 0, reorder_ppm: int = 0, seed: int = 1, delay_us: int = 0
    ) -> Generator[None, None, None]:
        """Join the two halves: by a bridge, by a relay that doubles and disorders, or by one that delays."""
        if delay_us:
            with self._impairment([str(self._delay), "ms", "mr", str(delay_us)], "delay"):
                yield
            return
        if duplicate_ppm or reorder_ppm:
            argv = [str(self._disorder), "ms", "mr", str(duplicate_ppm), str(reorder_ppm), str(seed)]
            with self._impairment(argv, "disorder"):
                yield
            return
        add = "link add b0 type bridge\nlink set ms master b0\nlink set mr master b0\nlink set b0 up\n"
        run("ip", "-n", self.middle, "-batch", "-", stdin=add)
        try:
            yield
        finally:
            run("ip", "-n", self.middle, "link", "delete", "b0")

    @contextmanager
    def losing(
        self, port: str, loss_ppm: int = 0, seed: int = 1, every: int = 0, least_bytes: int = 0
    ) -> Generator[Json, None, None]:
        """Lose frames that come to the middle by a port; the counts stand in what is given at the end.

        Args:
            port: `ms` from the sender, `mr` from the receiver.
            loss_ppm: By chance.
            seed: Of it.
            every: Besides, each so many; 0: none.
            least_bytes: Smaller frames are neither counted nor lost.
        """
        argv = [str(DROP), port, "--loss-ppm", str(loss_ppm), "--seed", str(seed)]
        argv += ["--every", str(every), "--least-bytes", str(least_bytes)]
        counts: Json = {}
        said: Json = {}
        try:
            with self._impairment(argv, f"drop-{port}") as said:
                yield counts
        finally:
            counts.update(said.get("interfaces", {}).get(port, {}))

    @contextmanager
    def _impairment(self, argv: Sequence[str], name: str) -> Generator[Json, None, None]:
        program = self.start(self.middle, argv, name=name)
        counts: Json = {}
        try:
            program.wait_text("ready")
            yield counts
        finally:
            program.stop(signal.SIGTERM)
            lines = program.log.read_text().splitlines()
            counts.update(json.loads(lines[-1]) if len(lines) > 1 else {})
            self._programs.remove(program)
