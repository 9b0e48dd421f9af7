# SPDX-License-Identifier: Apache-2.0
"""The section: one distribution a device, quantiles of round trips, ICMP beside, the paper's validation."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from reports.errors import ReportError
from reports.run.folder import RunFolder
from reports.software_latency.evidence import FOLDER, InjectedDelay, load_software_latencies
from reports.software_latency.icmp import IcmpEchoes
from reports.software_latency.plots import figure_quantiles, pair_quantiles
from reports.software_latency.section import OfSize
from reports.software_latency.trips import PairTrips
from tests.reports.pages import page_with, words_of
from tests.reports.software_latency.test_evidence import S_NS, write_folder
from tests.reports.software_latency.test_icmp import BUSYBOX

TWIN = InjectedDelay("a-delayed", 250, 250, "a", 500_000)
ICMP = (
    IcmpEchoes("a", "b", "icmp-a-b.txt", "a cannot ping: env: 'ping': No such file or directory"),
    IcmpEchoes("b", "a", "icmp-b-a.txt"),
)


def page_of(tmp_path: Path) -> str:
    """Return the page of a run whose target has a delayed twin 500 us above it, and echoes of `ping`."""
    run = RunFolder.create(tmp_path / "results", "virtual", "ci", simulated=True, commit="0" * 40)
    folder = run.evidence_folder(FOLDER, "linux-rt")
    s_ns = {**S_NS, "a-delayed": S_NS["a"] + 500_000}
    write_folder(folder, s_ns=s_ns, icmp=ICMP, injected=(TWIN,))
    (folder / "icmp-b-a.txt").write_text(BUSYBOX)
    run.update(target={"linux-rt": {"hostname": "linux-rt"}})
    run.close()
    return page_with(run.path, "software-latency")


def test_deviation_and_skewness_of_a_device_are_within_their_u(tmp_path: Path) -> None:
    """S is gamma-shaped of shape 20: deviation / mean is 1 / sqrt(20), and skewness 2 / sqrt(20)."""
    write_folder(tmp_path)
    (own,) = (each for each in load_software_latencies(tmp_path).estimate.latencies if each.devices == ("a",))
    assert own.deviation is not None
    assert own.skewness is not None
    deviation_ns, deviation_u_ns = own.deviation
    assert abs(deviation_ns - S_NS["a"] / 20**0.5) < deviation_u_ns < deviation_ns / 3
    skewness, skewness_u = own.skewness
    assert abs(skewness - 2 / 20**0.5) < skewness_u < 2


def test_icmp_stands_beside_the_round_trip_and_a_node_without_ping_is_named(tmp_path: Path) -> None:
    words = words_of(page_of(tmp_path))
    row = re.search(r"Echoes a b ([\d.]+) µs a cannot ping: .*?directory b a ([\d.]+) µs (.*?) of 2", words)
    assert row is not None, words
    assert float(row[1]) == pytest.approx(float(row[2]), rel=0.1)
    assert row[3] == "55.5 µs 55.5 µs 2"


def test_echoes_that_are_not_whole_are_told(tmp_path: Path) -> None:
    write_folder(tmp_path, icmp=ICMP[1:])
    with pytest.raises(ReportError, match=r"icmp-b-a\.txt: .*No such file"):
        load_software_latencies(tmp_path)
    (tmp_path / "icmp-b-a.txt").write_text("PING")
    with pytest.raises(ReportError, match=r"icmp-b-a\.txt: no summary"):
        load_software_latencies(tmp_path)


def test_the_known_delay_stands_beside_the_papers(tmp_path: Path) -> None:
    words = words_of(page_of(tmp_path))
    assert "of one way: 120 µs off there, 3.5 µs and \u22125.4 µs at the others" in words
    assert re.search(r"Put in Off by U a-delayed 500\.0 µs \S+ (µs|ns) [\d.]+ µs b \u2013 ", words)


def test_the_figure_shows_trips_that_were_measured(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rtt_ns = rng.integers(100_000, 200_000, 2000)
    excluded = rtt_ns > 190_000
    found = pair_quantiles(PairTrips("a", "b", rtt_ns, excluded))
    counted = np.sort(rtt_ns[~excluded])
    assert (found.name, found.n) == ("a → b", len(counted))
    assert {found.p01_ns, found.p50_ns, found.p99_ns, found.p999_ns} <= set(counted.tolist())
    assert np.count_nonzero(counted > found.p99_ns) == len(counted) // 100
    few = pair_quantiles(PairTrips("b", "c", rtt_ns[:999]))
    assert few.p999_ns is None
    figure = figure_quantiles("name", [found, few])
    assert "a → b" in figure
    assert "1 to 99 %" in figure
    with pytest.raises(ReportError, match="round trips above zero"):
        figure_quantiles("name", [])
    write_folder(tmp_path, s_ns={**S_NS, "d": 60_000}, injected=(InjectedDelay("d", 1, 1),))
    figure = OfSize(load_software_latencies(tmp_path)).figure
    assert "b → c" in figure
    assert "→ d" not in figure, "the delayed one is left out"
