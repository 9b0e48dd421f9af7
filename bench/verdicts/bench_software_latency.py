# SPDX-License-Identifier: Apache-2.0
"""Software latency between namespaces of one machine: what is put in is found, and what is wrong is told.

known   a device's twin has a delay of 0.1, 0.5 and 2 ms, as its waits took: error there, and at the others.
bias    a device's echo alone is 50 us slower: the sums of its swapped roles contradict each other (E_n > 1).
agree   the share of E_n that are at most 1, over all measurements without a bias.
hog     bursts of another program on both processors: in which share of measurements a doubt is told; and how
        many devices' S they move beyond U, against a quiet measurement before, without any.
time    3 to 20 devices by as many measurements: what one more costs among 20, over one more among 10.
"""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import yaml

from bench.lab.options import Options, takes
from bench.lab.report import REPOSITORY, Bar, publish, say
from bench.verdicts.verdict_faults import build_hog
from hw.open_bench import OpenBench
from hw.session import open_bench
from reports.software_latency.evidence import (
    InjectedDelay,
    LabDevice,
    SoftwareLatencies,
    load_software_latencies,
)
from reports.software_latency.plan import Device, make_plan
from resources.software_latency.devices import CONTROL, DELAYED
from resources.software_latency.round_trips import measure_round_trips
from resources.software_latency.settings import DELAYS_IN_AN_INTERVAL, RoundTripTimes

BENCH = REPOSITORY / "hw" / "benches" / "virtual.yaml"
DEVICES = 20
DELAYS_US = (100, 500, 2000)
BIAS_US = 50
BARS = {
    **{f"error_{delay_us}us_us": Bar(10) for delay_us in DELAYS_US},
    "elsewhere_us": Bar(10),
    "bias_en": Bar(1, at_least=True),
    "agree_share": Bar(0.9, at_least=True),
    "hog_told": Bar(1, at_least=True),
    "hog_untold": Bar(0),
    "time_20_per_device": Bar(1.5),
}


def bench_text() -> str:
    """Return the virtual bench with producers that are namespaces alone, twenty of them."""
    document = yaml.safe_load(BENCH.read_text())
    section = document["benchwright"]
    section["name"] = "round-trips"
    nodes = {"switch": section["nodes"]["switch"], "linux-rt": section["nodes"]["linux-rt"]}
    producers = {}
    for number in range(1, DEVICES + 1):
        nodes[f"p{number:02}"] = {"kind": "namespace", "clock": "host", "priority": 50}
        producers[number] = {"node": f"p{number:02}", "address": f"10.77.0.{number}"}
    section["nodes"], section["producers"] = nodes, producers
    section["clocks"] = {name: section["clocks"][name] for name in ("host", "linux-rt")}
    section["targets"] = {"linux-rt": section["targets"]["linux-rt"]}
    for key in ("time_server", "oscilloscopes", "topology"):
        section.pop(key, None)
    document["targets"] = {"linux-rt": document["targets"]["linux-rt"]}
    return yaml.safe_dump(document)


def devices_of(count: int) -> list[LabDevice]:
    """Return namespaces, each a device of its own kind."""
    return [
        LabDevice(f"p{n:02}", f"p{n:02}", f"namespace {n}", "bw-traffic", 50) for n in range(1, count + 1)
    ]


class Lab:
    """An open bench, and what is measured on it."""

    def __init__(self, bench: OpenBench, folder: Path, turns: int) -> None:
        """Remember them."""
        self._bench = bench
        self.folder = folder
        self._turns = turns

    def measure(
        self,
        name: str,
        count: int = 4,
        delayed: InjectedDelay | None = None,
        pairs: Sequence[tuple[LabDevice, LabDevice]] | None = None,
    ) -> SoftwareLatencies:
        """Make round trips between so many namespaces."""
        target = self._bench.spec.targets["linux-rt"]
        folder = self.folder / name
        say(f"{name}")
        devices = devices_of(count)
        times = self._times_for(delayed)
        measure_round_trips(self._bench, target, devices, times, folder, _quiet, delayed, pairs)
        return load_software_latencies(folder)

    def _times_for(self, delayed: InjectedDelay | None) -> RoundTripTimes:
        """Return a trip every millisecond, or as many as fit in of a delayed twin: fewer turns then."""
        delay_us = delayed.receive_us + delayed.send_us if delayed else 0
        interval_us = max(1000, DELAYS_IN_AN_INTERVAL * delay_us)
        turns = max(30, self._turns * 1000 // interval_us)
        return RoundTripTimes(turns * 20, 20, interval_us, (64,))

    def planned_s(self, count: int) -> float:
        """Measure so many devices by as many pairs as the planner asks for; return how long it took."""
        devices = devices_of(count)
        plan = make_plan(
            [Device(each.name, each.hardware, each.software) for each in devices], 1000, 1000, 1e4
        )
        named = {each.name: each for each in devices}
        pairs = [(named[one], named[other]) for one, other in plan.pairs]
        since_s = time.monotonic()
        found = self.measure(f"time-{count}", count, pairs=pairs)
        assert len(found.estimate.latencies) == len(pairs) == count
        return time.monotonic() - since_s


def _quiet(_text: str) -> None:
    pass


@contextmanager
def hogged(folder: Path, seconds: int) -> Generator[None]:
    """Take both processors in bursts of 20 to 60 ms, above every device, a sixth of the time."""
    hog = build_hog(folder)
    with ExitStack() as stack:
        for cpu in (0, 1):
            argv = [hog, str(cpu), "70", "20000", "60000", "100000", "300000", str(7 + cpu), str(seconds)]
            job = stack.enter_context(subprocess.Popen(argv, stdout=subprocess.DEVNULL))
            stack.callback(job.terminate)
        yield


def _means_en(found: SoftwareLatencies) -> list[float]:
    return [each.en for each in found.closures if each.order == 1]


def _hogged(lab: Lab, rounds: int) -> list[dict[str, list[str]]]:
    """Return of each measurement beside a hog whose S it moved beyond U, and what the result says."""
    made: list[dict[str, list[str]]] = []
    for turn in range(rounds):
        quiet = lab.measure(f"quiet-{turn}").estimate
        with hogged(lab.folder, 120):
            found = lab.measure(f"hogged-{turn}").estimate
        moved = [
            f"{', '.join(one.devices)}: {one.mean_ns - other.mean_ns:.0f} ns"
            for one, other in zip(found.latencies, quiet.latencies, strict=True)
            if abs(one.mean_ns - other.mean_ns) > one.mean_u_ns + other.mean_u_ns
        ]
        bounds = [bound.words for each in found.latencies for bound in each.bounds]
        made.append({"beyond": moved, "told": [*found.doubts, *bounds]})
    return made


def run(lab: Lab, rounds: int) -> tuple[dict[str, float], dict[str, object]]:
    """Return figures and what they come from."""
    errors: dict[int, list[float]] = {delay_us: [] for delay_us in DELAYS_US}
    elsewhere: list[float] = []
    agree: list[float] = []
    for turn in range(rounds):
        for delay_us in DELAYS_US:
            half_us = delay_us // 2
            twin = InjectedDelay(f"p01{DELAYED}", half_us, half_us, "p01", control=f"p01{CONTROL}")
            found = lab.measure(f"known-{delay_us}-{turn}", delayed=twin)
            errors[delay_us].append(next(each.error_ns for each in found.changes if each.put_ns) / 1e3)
            elsewhere += [abs(each.error_ns) / 1e3 for each in found.changes if not each.put_ns]
            agree += _means_en(found)
    biased = lab.measure("bias", delayed=InjectedDelay("p01", BIAS_US // 2, BIAS_US // 2))
    swapped = [
        each.en
        for each in biased.closures
        if each.kind == "swapped roles" and each.order == 1 and "p01" in each.one_name
    ]
    hogs = _hogged(lab, rounds)
    seconds = {count: lab.planned_s(count) for count in (3, 5, 10, DEVICES)}
    per_device = (seconds[DEVICES] - seconds[3]) / (DEVICES - 3) / ((seconds[10] - seconds[3]) / 7)
    figures = {
        **{f"error_{d}us_us": statistics.median(map(abs, each)) for d, each in errors.items()},
        "elsewhere_us": max(elsewhere),
        "bias_en": min(swapped),
        "agree_share": sum(en <= 1 for en in agree) / len(agree),
        "hog_told": sum(bool(each["told"]) for each in hogs) / len(hogs),
        "hog_untold": sum(len(each["beyond"]) for each in hogs if not each["told"]),
        "time_20_per_device": per_device,
    }
    detail: dict[str, object] = {
        "errors_us": {str(key): each for key, each in errors.items()},
        "elsewhere_us": elsewhere,
        "en": agree,
        "hog": hogs,
        "seconds": {str(key): each for key, each in seconds.items()},
    }
    return figures, detail


@takes(rounds=(3, "measurements of each delay"), turns=(80, "of each direction, at least 30"))
def main(options: Options) -> int:
    """Run the benchmark."""
    with tempfile.TemporaryDirectory(prefix="benchwright-round-trips-") as place:
        file = Path(place) / "round-trips.yaml"
        file.write_text(bench_text())
        with open_bench(file) as bench:
            figures, detail = run(Lab(bench, Path(place), options.turns), options.rounds)
    return publish("software_latency", figures, BARS, detail)
