# SPDX-License-Identifier: Apache-2.0
"""What the router of the virtual bench does on the wire, against what was asked of it.

Datagrams go through the router in both directions between two namespaces; the switch's tcpdump sees both ends
of the path by one clock, asks neither netem nor the router, and is never used to set it. The captures stay in
`results/bench/router/SETTING/`; tshark gives the same figures from one of them.

delay_off_us            largest distance of achieved and asked delay (0 to 300 ms, both directions apart) that
                        is beyond 0.5 ms + 0.2 % of asked; a delay is the median inside less that without
delay_error_us          largest distance at all; delays_marked: how many are off by more than their own U
shares_marked           of loss, copies, reordering (1 % each), how many lie outside of their 99 % interval
bursts_marked           of mean loss and mean burst of Gilbert-Elliott's model, likewise
NAME_error_us           largest distance of p10, p50, p90 of a jitter; NAME_width: p90 - p10, over that of the
                        asked one; NAME_distance, NAME_p: of Kolmogorov and Smirnov's test
correlated_…            what is achieved of a loss of 1 %, correlated by 25 %, and of a jitter, by 50 %
other_flow_ratio        by how much two-way exchanges of a flow move that no setting names, over its U, while
                        another one of the same path has 300 ms
wrong_named             routers that were set wrong on purpose, ten, and named as such; right_named: of ten
                        right ones; a delay counts as wrong beyond 0.5 ms + 0.2 % besides its U
tshark_lost, tshark_us  by how much tshark differs
"""

from __future__ import annotations

import shlex
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bench.lab.options import Options, takes
from bench.lab.report import REPOSITORY, RESULTS, Bar, publish, say, steal_ms
from bench.paths.flow import Machine, both_ends, exchange, send, sending
from bench.paths.foreign import lost_and_median_ns
from hw.path_settings import Distribution, Flow, GilbertElliott, PathSettings, RandomLoss
from hw.protocols import Router
from hw.router import PathDirection
from hw.session import Bench, open_bench
from hw.virtual.bench_network import port_of
from reports.paths.datagrams import Integers
from reports.paths.delay import added_ns
from reports.paths.transits import Transits
from resources.tools.capture import capture_file
from resources.tools.path_capture import Achieved, achieved, captured_path

BENCH_FILE = REPOSITORY / "hw" / "benches" / "virtual.yaml"
CAPTURES = RESULTS / "router"
NEAR, FAR = "p02", "p01"
"""The router is on the link of the first."""
THERE, BACK = PathDirection(NEAR, "switch"), PathDirection(NEAR, NEAR)
PORT, OTHER_PORT = 5001, 5002
DELAYS_US = ((1_000, 5_000), (5_000, 20_000), (20_000, 100_000), (100_000, 300_000), (300_000, 1_000), (0, 0))
"""There and back at the same time: each direction has each once."""
ALLOWED_US, ALLOWED_SHARE = 500, 0.002
OF_DELAYS, OF_SHARES, OF_WRONG = 300, 10_000, 2_000
INTERVAL_S = 0.001
DELAY_INTERVAL_S = 0.004
SHARES = {
    "loss": PathSettings(loss=RandomLoss(1)),
    "copies": PathSettings(duplicate_percent=1),
    "reordering": PathSettings(delay_us=20_000, reorder_percent=1),
}
BURSTS = PathSettings(loss=GilbertElliott(1, 20))
JITTERS = {
    each.value: PathSettings(delay_us=20_000, jitter_us=5_000, jitter_distribution=each)
    for each in Distribution
}
CORRELATED = {
    "correlated_loss": PathSettings(loss=RandomLoss(1, 25)),
    "correlated_jitter": replace(JITTERS["normal"], jitter_correlation_percent=50),
}
WRONG: tuple[tuple[PathSettings, str], ...] = (
    (PathSettings(delay_us=5_000), "delay 8ms"),
    (PathSettings(delay_us=20_000), "delay 18ms"),
    (PathSettings(delay_us=100_000), "delay 102ms"),
    (PathSettings(delay_us=300_000), "delay 297ms"),
    (PathSettings(delay_us=1_000), ""),
    (PathSettings(loss=RandomLoss(1)), "loss 4%"),
    (PathSettings(loss=RandomLoss(5)), ""),
    (PathSettings(duplicate_percent=3), "duplicate 0.5%"),
    (PathSettings(delay_us=20_000, reorder_percent=2), "delay 20ms reorder 10%"),
    (JITTERS["normal"], "delay 20ms 3ms distribution normal"),
)
"""What is asked, and what is set behind the back of whoever asked; empty: nothing at all."""
BARS = {
    "delay_off_us": Bar(0),
    "shares_marked": Bar(0),
    "bursts_marked": Bar(0),
    "other_flow_ratio": Bar(1),
    "wrong_named": Bar(len(WRONG), at_least=True),
    "tshark_lost": Bar(0),
    "tshark_us": Bar(1),
}


def allowed_us(asked: PathSettings) -> float:
    """Return how far a delay may be off under emulation."""
    return ALLOWED_US + ALLOWED_SHARE * asked.delay_us


@dataclass
class Lab:
    """The bench, its router, and both machines."""

    bench: Bench
    router: Router
    ends: tuple[Machine, Machine]
    said: dict[str, Any] = field(default_factory=dict[str, Any])
    """What each setting came to, for the file of results."""

    def seen(self, name: str, count: int, interval_s: float, settles_s: float) -> tuple[Transits, Transits]:
        """Send datagrams both ways, and return what became of those there and those back.

        Raises:
            RuntimeError: A capture lacks some that were sent.
        """
        near, far = self.ends
        with (
            both_ends(self.bench, self.ends, PORT) as sockets,
            captured_path(self.bench, near.port, far.port, CAPTURES / name) as path,
        ):
            send(sockets, count, interval_s)
            time.sleep(settles_s)
        found = path.there(near.address, PORT), path.back(far.address, PORT)
        for each in found:
            if len(each.sent_ns) != count:
                raise RuntimeError(f"{name}: {len(each.sent_ns)} of {count} datagrams are in the capture")
        return found

    def judged(
        self, name: str, asked: PathSettings, found: Transits, without: Sequence[Integers]
    ) -> Achieved:
        """Say and keep what a path achieved."""
        done = achieved(asked, found, without)
        say(f"{name:16} {done}")
        self.said[name] = str(done)
        return done

    def without(self, name: str, count: int, interval_s: float) -> tuple[Transits, Transits]:
        """Return datagrams without delay."""
        for path in (THERE, BACK):
            self.router.configure([path], PathSettings())
        return self.seen(name, count, interval_s, 0)

    def there(self, name: str, asked: PathSettings, count: int) -> Transits:
        """Return datagrams of a setting in one direction, the other one without."""
        self.router.configure([THERE], asked)
        return self.seen(name, count, INTERVAL_S, (asked.delay_us + 4 * asked.jitter_us) / 1e6)[0]


def delays(lab: Lab) -> dict[str, float]:
    """Return how far delays of both directions are off."""
    off_us: list[float] = []
    error_us: list[float] = []
    marked = 0
    found_of: dict[str, tuple[Transits, Transits]] = {}
    without = lab.without("delay-without", OF_DELAYS, DELAY_INTERVAL_S)
    for asked_us in DELAYS_US:
        both = [PathSettings(delay_us=each) for each in asked_us]
        for path, asked in zip((THERE, BACK), both, strict=True):
            lab.router.configure([path], asked)
        name = f"delay-{asked_us[0]}-{asked_us[1]}"
        found_of[name] = lab.seen(name, OF_DELAYS, DELAY_INTERVAL_S, max(asked_us) / 1e6)
    again = lab.without("delay-again", OF_DELAYS, DELAY_INTERVAL_S)
    for (name, found), asked_us in zip(found_of.items(), DELAYS_US, strict=True):
        for way, asked, each, *sections in zip(
            ("there", "back"), asked_us, found, without, again, strict=True
        ):
            settings = PathSettings(delay_us=asked)
            done = lab.judged(f"{name}-{way}", settings, each, [section.arrived_ns for section in sections])
            delay = next(each for each in done.conditions if each.name == "delay")
            error_us.append(abs(delay.achieved - asked))
            off_us.append(max(0.0, error_us[-1] - allowed_us(settings)))
            marked += delay.is_off
    return {
        "delay_off_us": max(off_us),
        "delay_error_us": max(error_us),
        "delay_error_median_us": statistics.median(error_us),
        "delays_marked": marked,
    }


def shares(lab: Lab, without: Sequence[Integers]) -> dict[str, float]:
    """Return shares, and how many are marked."""
    figures: dict[str, float] = {"shares_marked": 0}
    for name, asked in SHARES.items():
        done = lab.judged(name, asked, lab.there(name, asked, OF_SHARES), without)
        share = next(each for each in done.conditions if each.name == name)
        figures[f"{name}_percent"] = share.achieved
        figures["shares_marked"] += share.is_off
    done = lab.judged("bursts", BURSTS, lab.there("bursts", BURSTS, OF_SHARES), without)
    loss, burst, *_ = done.conditions
    return figures | {
        "bursts_marked": loss.is_off + burst.is_off,
        "bursts_loss_percent": loss.achieved,
        "burst_datagrams": burst.achieved,
    }


def jitters(lab: Lab, without: Sequence[Integers]) -> dict[str, float]:
    """Return how far percentiles of each distribution are off, and how wide it is."""
    figures: dict[str, float] = {}
    for name, asked in JITTERS.items():
        found = lab.judged(name, asked, lab.there(f"jitter-{name}", asked, OF_SHARES // 2), without).jitter
        assert found is not None
        figures[f"{name}_error_us"] = max(abs(each.achieved - each.asked) for each in found.percentiles)
        figures[f"{name}_width"] = found.width.achieved / found.width.asked
        figures[f"{name}_distance"], figures[f"{name}_p"] = found.distance, found.p_value
    asked = CORRELATED["correlated_loss"]
    done = lab.judged("correlated_loss", asked, lab.there("correlated-loss", asked, OF_SHARES), without)
    figures["correlated_loss_percent"] = done.conditions[0].achieved
    asked = CORRELATED["correlated_jitter"]
    found = lab.there("correlated-jitter", asked, OF_SHARES // 2)
    jitter = lab.judged("correlated_jitter", asked, found, without).jitter
    assert jitter is not None
    assert jitter.correlation is not None
    figures["correlated_jitter_percent"] = jitter.correlation.achieved
    return figures


def other_flow(lab: Lab) -> dict[str, float]:
    """Return by how much exchanges move that no setting names, while another flow has 300 ms."""
    near, far = lab.ends
    sections: list[Integers] = []
    for delay_us in (0, 300_000, 0, 300_000, 0):
        lab.router.configure([THERE], PathSettings(delay_us=delay_us), [Flow("udp", destination_port=PORT)])
        folder = CAPTURES / f"other-flow-{len(sections)}"
        with (
            both_ends(lab.bench, lab.ends, PORT) as delayed,
            both_ends(lab.bench, lab.ends, OTHER_PORT) as sockets,
            captured_path(lab.bench, near.port, far.port, folder) as path,
            sending(delayed, DELAY_INTERVAL_S),
        ):
            exchange(sockets, OF_DELAYS, DELAY_INTERVAL_S)
        there, back = path.there(near.address, OTHER_PORT), path.back(far.address, OTHER_PORT)
        sections.append(there.inside_ns + back.inside_ns)
    moved_ns, u_ns = added_ns(np.concatenate(sections[1::2]), sections[::2])
    say(f"other flow moves by {moved_ns / 1000:.1f} us, U {u_ns / 1000:.1f} us")
    return {
        "other_flow_moved_us": abs(moved_ns) / 1000,
        "other_flow_u_us": u_ns / 1000,
        "other_flow_ratio": abs(moved_ns) / u_ns,
    }


def wrong(lab: Lab, without: Sequence[Integers]) -> dict[str, float]:
    """Return how many routers that were set wrong on purpose are named as such, and how many right ones."""
    named = {"right_named": 0, "wrong_named": 0}
    for number, (asked, instead) in enumerate(WRONG):
        for key in named:
            realised = lab.router.configure([THERE], asked)
            if key == "wrong_named":
                tc = f"tc qdisc delete dev {realised.interface} root"
                if instead:
                    tc += f" && tc qdisc add dev {realised.interface} root netem limit 100000 {instead}"
                lab.bench.node(realised.node).run(shlex.split(f"sh -c {shlex.quote(tc)}"))
            name = f"{key.removesuffix('_named')}-{number}"
            found = lab.seen(name, OF_WRONG, INTERVAL_S, 0.4)[0]
            done = lab.judged(name, asked, found, without)
            named[key] += any(
                each.is_beyond(allowed_us(asked) if each.unit == "us" else 0) for each in done.conditions
            )
    return {key: float(value) for key, value in named.items()}


def by_tshark(lab: Lab, found: Transits, name: str) -> dict[str, float]:
    """Return by how much the figures of a setting differ by tshark from the same files."""
    near = lab.ends[0]
    files = [capture_file(CAPTURES / name, end.port) for end in lab.ends]
    lost, median_ns = lost_and_median_ns(files[0], files[1], near.address)
    return {
        "tshark_lost": abs(lost - int(found.is_lost.sum())),
        "tshark_us": abs(median_ns - statistics.median(found.arrived_ns.tolist())) / 1000,
    }


@takes(shares_only=(False, "only loss, copies, order and jitter"))
def main(options: Options) -> int:
    """Run the benchmark."""
    stolen_ms = steal_ms()
    figures: dict[str, float] = {}
    with open_bench(BENCH_FILE) as bench:
        addresses = {each.node: each.address for each in bench.spec.producers.values()}
        near, far = (Machine(node, addresses[node], port_of(bench.spec, node)) for node in (NEAR, FAR))
        lab = Lab(bench, bench.router(), (near, far))
        without = lab.without("without", OF_WRONG, INTERVAL_S)
        of_there = [without[0].arrived_ns]
        lossy = PathSettings(delay_us=5_000, loss=RandomLoss(1))
        found = lab.there("tshark", lossy, OF_SHARES // 2)
        figures |= by_tshark(lab, found, "tshark")
        figures |= shares(lab, of_there)
        figures |= jitters(lab, of_there)
        if not options.shares_only:
            figures |= delays(lab)
            figures |= other_flow(lab)
            figures |= wrong(lab, of_there)
        lab.router.clear()
    bars = {key: bar for key, bar in BARS.items() if key in figures}
    detail = {"stolen_ms": steal_ms() - stolen_ms, "settings": lab.said}
    return publish("router", figures, bars, detail)
