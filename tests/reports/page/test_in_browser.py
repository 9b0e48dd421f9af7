# SPDX-License-Identifier: Apache-2.0
"""The pages in a real browser: nothing overprints, nothing is clipped, on screens and on paper."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reports.page.render import render, render_pages
from tests.dashboards.trends.browser import Browser
from tests.reports.clock_run import add_clock_trial
from tests.reports.control_loops.ring_sample import TARGET, write_sample_ring
from tests.reports.patterns.sample_patterns import ramp_series, write_sample_patterns
from tests.reports.sample_clock import compare_answer
from tests.reports.sample_run import Disturbance, add_attempt, make_run, make_run_of_targets

pytestmark = pytest.mark.slow

PAPER_PX = 1032
"""Width of A4 landscape less the margins of the page's style, at 96 px an inch."""
FAULTS = """(isWide => {
  const found = [], width = document.documentElement.clientWidth, slack = 1.5;
  const name = node => node.tagName + ': ' + node.textContent.trim().slice(0, 40);
  const seen = node => {
    const box = node.getBoundingClientRect();
    return box.width && box.height ? box : null;
  };
  const scrolls = node => node !== null
    && (['auto', 'scroll'].includes(getComputedStyle(node).overflowX) || scrolls(node.parentElement));
  if (document.documentElement.scrollWidth > width + slack) found.push('the page is wider than the window');
  for (const node of document.querySelectorAll('body *')) {
    const box = seen(node);
    if (!box || node.parentElement.closest('svg') || node.closest('.skip')) continue;
    if (box.right > width + slack && !scrolls(node)) found.push('beyond the window: ' + name(node));
    if (getComputedStyle(node).overflowX === 'hidden' && node.scrollWidth > node.clientWidth + slack)
      found.push('clipped: ' + name(node));
  }
  for (const node of isWide ? document.querySelectorAll('.wide, .matrix-wide, figure') : [])
    if (node.scrollWidth > node.clientWidth + slack) found.push('to be scrolled: ' + name(node));
  for (const cell of document.querySelectorAll('td, th, .verdict > div'))
    if (seen(cell) && cell.scrollWidth > cell.clientWidth + slack)
      found.push('out of its cell: ' + name(cell));
  const blocks = [...document.querySelectorAll('table, figure, h2, h3, p, ul')].filter(seen);
  for (const [place, one] of blocks.entries()) for (const other of blocks.slice(place + 1)) {
    if (one.contains(other) || other.contains(one)) continue;
    const a = seen(one), b = seen(other);
    const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (across > slack && down > slack && !(scrolls(one) && scrolls(other)))
      found.push('one over another: ' + name(one) + ' / ' + name(other));
  }
  return [...new Set(found)].slice(0, 12);
})"""
"""What is wrong with how a page is laid out; where it is wide, nothing has to be scrolled either."""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    run = make_run_of_targets(tmp_path_factory.mktemp("results"), close=False)
    add_clock_trial(run, compare_answer(), target="linux-rt")
    run.close()
    folder = tmp_path_factory.mktemp("pages")
    for name, text in render_pages(run.path).items():
        (folder / name).write_text(text, encoding="utf-8")
    stalled = Disturbance(path_delay_ns={33: 15_000_000, 10: 120_000_000}, lost={12: 3}, stalled=True)
    undecided = Disturbance(path_delay_ns={33: 15_000_000}, stalled=True)
    for name, disturbance in (("fail", stalled), ("inconclusive", undecided)):
        one = make_run(tmp_path_factory.mktemp(name), disturbance)
        (folder / f"one-{name}.html").write_text(render(one.path), encoding="utf-8")
    looped = make_run(tmp_path_factory.mktemp("looped"), close=False)
    write_sample_ring(looped.evidence_folder("control_loops", TARGET))
    place = f"control_loops/{TARGET}/0-ms-under-compile-like-with-chrony"
    series = [ramp_series(place, f"hop {hop}", 4.0 + 0.7 * hop) for hop in range(8)]
    write_sample_patterns(looped.path, *series)
    looped.close()
    (folder / "one-patterns.html").write_text(render(looped.path), encoding="utf-8")
    assert "2 more series with patterns" in (folder / "one-patterns.html").read_text(encoding="utf-8")
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as opened:
        yield opened


@pytest.mark.parametrize(
    ("window", "wide"),
    [
        ({"width": 1400, "height": 900}, True),
        ({"width": 500, "height": 900}, False),
        ({"width": PAPER_PX, "height": 700, "paper": True}, True),
    ],
    ids=["1400", "500", "paper"],
)
def test_nothing_overprints_and_nothing_is_clipped(
    browser: Browser, pages: list[Path], window: dict[str, Any], wide: bool
) -> None:
    browser.window(**window)
    found: dict[str, list[str]] = {}
    for page in pages:
        browser.open(page, scripted=False)
        browser.value("document.querySelectorAll('details').forEach(each => each.open = true)")
        browser.settle()
        assert browser.requests == [page.as_uri()]
        found[page.name] = browser.value(f"{FAULTS}({str(wide).lower()})")
    assert found == {page.name: [] for page in pages}


def test_a_small_window_shows_all_margins_and_stacks_without_scrolling(
    browser: Browser, tmp_path: Path
) -> None:
    run = make_run_of_targets(tmp_path / "run", close=False)
    slow = Disturbance(path_delay_ns={13: 2_000_000_000})
    for seed, stack in enumerate(("user", "rtdip", "kernel-tuned"), 40):
        add_attempt(run, 1, slow, seed, simulated=True, target="linux-rt", stack=stack, producers=(1,))
    run.close()
    browser.window(500, 900)
    for name, text in render_pages(run.path).items():
        page = tmp_path / name
        page.write_text(text, encoding="utf-8")
        browser.open(page, scripted=False)
        browser.value("document.querySelectorAll('details').forEach(each => each.open = true)")
        assert browser.value(f"{FAULTS}(false)") == []
        hidden = browser.value(
            "[...document.querySelectorAll('#margins, .wide:has(> .stacks)')]"
            ".map(n => n.scrollWidth - n.clientWidth)"
        )
        assert hidden == [0] * len(hidden) != [], name
        if 'class="stacks"' in text:
            heads = browser.value(
                "[...document.querySelectorAll('.stacks tbody tr:nth-child(4) > *')]"
                ".filter(n => n.getBoundingClientRect().right <= innerWidth)"
                ".map(n => getComputedStyle(n, '::before').content)"
            )
            for stack in ("kernel", "user", "rtdip", "kernel-tuned"):
                assert any(f"{stack}: p99" in head for head in heads), heads
            heights = (
                "[...document.querySelectorAll('#margins text')].map(t => t.getBoundingClientRect().height)"
            )
            assert min(height for height in browser.value(heights) if height) > 8


def test_hashes_are_folded_away_and_not_printed(browser: Browser, pages: list[Path], tmp_path: Path) -> None:
    browser.window(1400, 900)
    browser.open(pages[-1], scripted=False)
    assert browser.value("document.querySelector('td.hash').closest('details').open") is False
    digest = browser.value("document.querySelector('td.hash').textContent.trim()")
    assert len(digest) == 64
    file = tmp_path / "page.pdf"
    browser.print(file)
    done = subprocess.run(["pdftotext", str(file), "-"], capture_output=True, check=True, text=True)
    assert "each with its hash" in done.stdout
    assert digest not in re.sub(r"\s", "", done.stdout)
