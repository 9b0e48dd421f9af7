# SPDX-License-Identifier: Apache-2.0
"""Timed edges: every profile says how many, every kind of bench has every view, a wrong one is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from hw.errors import ConfigError
from resources.profiles import times_of
from resources.timed_edges.settings import TIMES as EDGE_TIMES
from resources.timed_edges.settings import VIEWS, VIEWS_FILE, edge_times, load_view

MEMORY_SAMPLES = 2_000_000
"""Samples a channel, of all segments together: that of the virtual instruments, which have four channels."""


@pytest.mark.parametrize("name", ["ci", "nightly", "acceptance", "soak"])
def test_profiles_of_the_project_have_edges(name: str) -> None:
    edges = times_of(name, EDGE_TIMES, edge_times)
    assert edges is not None
    assert edges.edges >= 2000
    if name in ("acceptance", "soak"):
        assert edges.edges == 1_000_000  # as many as the paper


@pytest.mark.parametrize("simulated", [True, False])
@pytest.mark.parametrize("name", VIEWS)
def test_views_fit_memory_and_period(name: str, simulated: bool) -> None:
    view = load_view(name, simulated)
    edges = times_of("ci", EDGE_TIMES, edge_times)
    assert edges is not None
    period_ns = 1000 * edges.clock_period_us if name.startswith("clock") else edges.period_ns
    assert view.window_ns < period_ns  # so that a record holds one reference edge only
    assert view.window_ns * 1e-9 * view.sample_rate_hz * view.segments <= MEMORY_SAMPLES


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("window_ns = 150000", "window_ns = 1", r"simulated.gettime-software.window_ns: must be an integer"),
        ("[hardware.tgpio-latch]", "[hardware.tgpio-lotch]", r"hardware.tgpio-lotch: no such view"),
        ("centre_ns = 55000", "centre_ns = 75000", r"simulated.gettime-software.centre_ns: must be"),
        ("segments = 500", "segmentz = 500", r"hardware.tgpio-latch.segments: missing"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = VIEWS_FILE.read_text()
    assert old in text
    path = tmp_path / "timed_edges.toml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ConfigError, match=message):
        load_view("tgpio-latch", simulated=False, path=path)


def test_a_view_that_is_missing_is_named() -> None:
    with pytest.raises(ConfigError, match="no view 'tgpio'"):
        load_view("tgpio", simulated=True)
