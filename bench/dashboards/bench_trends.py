# SPDX-License-Identifier: Apache-2.0
"""How large is the page of two years of history, how soon does it stand, and how long does a zoom take?

page_mb         size of the page of 2,000 runs of 48 streams, with clocks, edges and their verdicts
render_s        time of `python -m dashboards trends`, without starting the interpreter
first_drawn_ms  from the navigation to the first charts drawn; Chromium without a window, 1400 x 900 pixels
zoom_ms         from a key that zooms to the second frame after it, with about thirty charts in sight
zoom_draw_ms    of that, what drawing takes

`--runs` makes a shorter history, for a first look.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from pathlib import Path

from bench.lab.options import Options, takes
from bench.lab.report import Bar, publish, say
from dashboards.store import Store
from dashboards.trends import Selection, write_page
from tests.dashboards.trends.browser import Browser
from tests.dashboards.trends.history import fill_store
from tests.dashboards.two_years import RUNS

LOADS = 7
BARS = {"page_mb": Bar(25), "render_s": Bar(60), "first_drawn_ms": Bar(2000), "zoom_ms": Bar(100)}
_CELL = "#latency .cell:nth-child(24) canvas"
_ZOOM = """(async () => {
  const chart = document.querySelector(%s);
  chart.focus({ preventScroll: true });
  const found = [];
  for (const key of ['+', '+', '+', '-', '-', '0']) {
    const start = performance.now();
    chart.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    found.push([performance.now() - start, Number(document.documentElement.dataset.drawMs)]);
  }
  return found;
})()"""


@takes(runs=(RUNS, "runs in the history"))
def main(options: Options) -> int:
    """Run the benchmark."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        say(f"a history of {options.runs} runs")
        fill_store(folder / "store.sqlite", folder / "runs", options.runs)
        page = folder / "trends.html"
        start_s = time.perf_counter()
        with Store(folder / "store.sqlite", create=False) as store:
            write_page(store, Selection(), page)
        render_s = time.perf_counter() - start_s
        first, zooms, draws = _in_browser(page)
        figures = {
            "page_mb": page.stat().st_size / 1e6,
            "render_s": render_s,
            "first_drawn_ms": statistics.median(first),
            "zoom_ms": statistics.median(zooms),
            "zoom_draw_ms": statistics.median(draws),
        }
    detail = {"runs": options.runs, "first_drawn_ms": first, "zoom_ms": zooms, "zoom_draw_ms": draws}
    return publish("trends", figures, BARS, detail)


def _in_browser(page: Path) -> tuple[list[float], list[float], list[float]]:
    """Return times in ms: from navigation to the first drawing, of zooms, and of their drawing."""
    first: list[float] = []
    zooms: list[float] = []
    draws: list[float] = []
    with Browser() as browser:
        browser.window(1400, 900)
        for turn in range(LOADS):
            say(f"load {turn + 1} of {LOADS}")
            browser.open(page)
            first.append(float(browser.value("document.documentElement.dataset.firstDrawnMs")))
            browser.box(_CELL)
            for zoom_ms, draw_ms in browser.value(_ZOOM % json.dumps(_CELL)):
                zooms.append(float(zoom_ms))
                draws.append(float(draw_ms))
    return first, zooms, draws
