# SPDX-License-Identifier: Apache-2.0
"""Ways for a program's packets: AF_XDP on the card, alone and with shared memory, a veth a program, and UDP.

No stack is in it but the kernel's: frames are counted, or sent back as they came. They are sent as fast as a
program can; the time that both programs took of a processor, with what the kernel did for them, is by frame.
Half a round trip is the median of many, with a receiver that sleeps and with one that never does. Sender and
receiver stand on a processor each where there are two. All ways copy (a veth has no other); a card whose
driver lets AF_XDP have its memory spares a copy on it, which a veth behind it cannot.
"""

from __future__ import annotations

import signal
import statistics
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from functools import partial

from bench.lab.compiler import compile_bpf, compile_c
from bench.lab.namespaces import Json, Namespaces, Program, receiver_cpu, sender_cpu
from bench.lab.options import Options, takes
from bench.lab.processes import last_object
from bench.lab.report import REPOSITORY, RUNS_MIN, Bar, alternate, medians, publish, steal_ms
from bench.userstack.line import HERE, SERVICE

WAYS = ("udp", "card", "shared", "veth")
OWN, PEER, CARD = "10.77.1.2", "10.77.1.1", "c0"
MTU_BYTES, HEADERS_BYTES = 9000, 42
FRAMES_BYTES = (64, 1514, MTU_BYTES + 14)
"""With Ethernet's header: the smallest, one of the usual MTU, one of the card's."""
PORT = "7700"
FLOOD_MS, TRIPS, TRIP_INTERVAL_US = 1000, 2000, 100
SEND_MAX_S = 20.0
NO_BARS: dict[str, Bar] = {}


class Card(Namespaces):
    """A peer, and a machine whose end of the link is the card."""

    def __init__(self) -> None:
        """Make nothing yet."""
        super().__init__("po")
        self.peer, self.own = self.names.values()

    def _join(self) -> None:
        targets = REPOSITORY / "targets" / "linux"
        header = compile_bpf(HERE / "packet_path_xdp.c", "path", self.folder / "packet_path_program.h")
        accel = targets / "userstack" / "accel"
        sources = [accel / f"port_{name}.c" for name in ("rings", "stackd", "libc")]
        includes = [f"-I{folder}" for folder in (header.parent, targets, targets / "userstack")]
        options = ["-D_GNU_SOURCE", *includes, str(targets / "bpf" / "port_bpf.c"), *map(str, sources)]
        self._program = compile_c(HERE / "packet_path.c", self.folder / "packet_path", *options)
        self.link("p", CARD, "o", CARD)
        for place, address in (("p", PEER), ("o", OWN)):
            self.set_up(place, CARD, f"{address}/24", mtu_bytes=MTU_BYTES)
            self.offloads_off(place, CARD)

    @contextmanager
    def receiving(self, way: str, role: str, *, busy: bool = False) -> Generator[Program, None, None]:
        """Have a receiver for as long as the block lasts."""
        with ExitStack() as around:
            path = self.folder / "stackd.sock"
            if way == "veth":
                argv = [str(SERVICE), "serve", "--interface", CARD, "--socket", str(path)]
                service = self.start(self.own, argv, receiver_cpu())
                around.callback(service.stop, signal.SIGTERM)
                service.wait_text('"ready"')
            argv = [str(self._program), way, CARD, PORT, role, str(int(busy)), str(path)]
            receiver = self.start(self.own, argv, receiver_cpu())
            around.callback(receiver.stop, signal.SIGKILL)
            receiver.wait_text("ready")
            yield receiver

    def send(self, *arguments: str) -> Json:
        """Send, and return what the sender says."""
        sender = self.start(self.peer, [str(self._program), *arguments], sender_cpu())
        return last_object(sender.wait(SEND_MAX_S))

    def flood(self, way: str, frame_bytes: int) -> dict[str, float]:
        """Return frames a second that came, and processor time by frame, in ns."""
        with self.receiving(way, "sink") as receiver:
            sent = self.send("flood", OWN, PORT, str(frame_bytes - HEADERS_BYTES), str(FLOOD_MS))
            receiver.stop(signal.SIGTERM)
            came = last_object(receiver.log.read_text())
        return {
            "frames_per_s": came["frames"] / came["seconds"],
            "cpu_ns_per_frame": 1e9 * (came["cpu_s"] + sent["cpu_s"]) / came["frames"],
            "lost_share": 1 - came["frames"] / sent["sent"],
        }

    def half_trip_us(self, way: str, busy: bool) -> float:
        """Return the median of half a round trip of the smallest frame."""
        size_bytes = str(FRAMES_BYTES[0] - HEADERS_BYTES)
        with self.receiving(way, "echo", busy=busy):
            trips = self.send("ask", OWN, PORT, size_bytes, str(TRIPS), str(TRIP_INTERVAL_US))
        if trips["lost"] > TRIPS / 100:
            raise RuntimeError(f"{way}: {trips['lost']} of {TRIPS} round trips were lost")
        return statistics.median(trips["trips_ns"]) / 2000


def measure(runs: int) -> tuple[dict[str, float], dict[str, object]]:
    """Measure all ways by turns and return medians and the single runs."""
    figures: dict[str, float] = {}
    detail: dict[str, object] = {}
    with Card() as card:
        for frame_bytes in FRAMES_BYTES:
            floods: dict[str, Callable[[], dict[str, float]]] = {
                way: partial(card.flood, way, frame_bytes) for way in WAYS
            }
            results = alternate(floods, runs, f"floods of {frame_bytes} B")
            detail[f"flood_{frame_bytes}_bytes"] = results
            for way, turns in results.items():
                figures |= {
                    f"{way}_{frame_bytes}_bytes_{key}": value for key, value in medians(turns).items()
                }
        for name, busy in (("asleep", False), ("busy", True)):
            trips: dict[str, Callable[[], float]] = {
                way: partial(card.half_trip_us, way, busy) for way in WAYS
            }
            halves = alternate(trips, runs, f"trips {name}")
            detail[f"half_trip_{name}_us"] = halves
            figures |= {
                f"{way}_half_trip_{name}_us": statistics.median(turns) for way, turns in halves.items()
            }
    for frame_bytes in FRAMES_BYTES:
        rates = {way: figures[f"{way}_{frame_bytes}_bytes_frames_per_s"] for way in WAYS}
        figures[f"veth_{frame_bytes}_bytes_of_card"] = rates["veth"] / rates["card"]
    figures["veth_half_trip_busy_of_card"] = (
        figures["veth_half_trip_busy_us"] / figures["card_half_trip_busy_us"]
    )
    return figures, detail


@takes(runs=(RUNS_MIN, "turns of each way"))
def main(options: Options) -> int:
    """Run the benchmark; return its exit code."""
    stolen_ms = steal_ms()
    figures, detail = measure(options.runs)
    figures["steal_ms"] = steal_ms() - stolen_ms
    return publish("packet_paths", figures, NO_BARS, {**detail, "options": vars(options)})
