# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser: it draws, zooms, says exact figures, opens runs, prints; and never goes out."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dashboards.store import Store
from dashboards.trends import Selection
from dashboards.trends.content import content
from dashboards.trends.page import page_of, script
from tests.dashboards.trends.browser import Browser, PageError
from tests.dashboards.trends.history import EVENT_TEXT, OVER_RUN, SLOWER_FROM

LARGE = "#latency .large canvas"
INKED = """(selector => { const c = document.querySelector(selector);
  const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
  let n = 0; for (let i = 3; i < d.length; i += 4) if (d[i]) n++; return n; })"""


@pytest.fixture(scope="module")
def shown(small: Path) -> dict[str, Any]:
    with Store(small, create=False) as store:
        return content(store, Selection())


@pytest.fixture(scope="module")
def page(shown: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "trends.html"
    path.write_text(page_of(shown, script()), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as opened:
        opened.window(1400, 900)
        yield opened


def range_of(browser: Browser) -> tuple[int, int]:
    """Return how many runs are in view, and of how many."""
    found = re.search(r"(\d+) of (\d+) runs?$", browser.texts("#range")[0])
    assert found is not None
    return int(found[1]), int(found[2])


def drag(browser: Browser, box: dict[str, float], start: float, end: float) -> None:
    """Drag across a chart, from and to shares of its width."""
    y = box["y"] + box["height"] / 2
    ends = [box["x"] + share * box["width"] for share in (start, end)]
    browser.mouse("mouseMoved", ends[0], y)
    browser.mouse("mousePressed", ends[0], y, button="left", clickCount=1, buttons=1)
    browser.mouse("mouseMoved", ends[1], y, buttons=1)
    browser.mouse("mouseReleased", ends[1], y, button="left", clickCount=1)
    browser.settle()
    browser.settle()


def figure(shown: dict[str, Any], stream: str, name: str, row: int) -> float:
    series = next(
        s
        for s in shown["series"]
        if (s["tags"].get("stream"), s["tags"]["profile"], s["measurement"]) == (stream, "ci", "hil_latency")
        and s["tags"]["quantity"] == "one_way_latency"
    )
    packed = series["columns"][name]
    return float(packed["c"] if "c" in packed else packed[row])


def test_draws_without_going_out(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert browser.requests == [page.as_uri()]
    assert browser.value("document.documentElement.dataset.ready") == "30"
    for selector in (
        "#overview canvas",
        LARGE,
        "#sync .large canvas",
        "#edges .large canvas",
        "#health canvas",
    ):
        browser.box(selector)
        assert browser.value(f"{INKED}({json.dumps(selector)})") > 2000, selector
    assert len(browser.texts("#latency .cell")) == 48
    assert browser.texts(".strip button")[OVER_RUN] == "✖"
    assert browser.texts("#simulated")[0].count("15 of 30 runs shown") == 1


def test_drag_wheel_keys_and_reset_move_all_charts(browser: Browser, page: Path) -> None:
    browser.open(page)
    box = browser.box(LARGE)
    drawn = int(browser.value("document.documentElement.dataset.drawings"))
    assert range_of(browser) == (30, 30)
    drag(browser, box, 0.5, 0.8)
    assert 7 <= range_of(browser)[0] <= 12
    assert "from=" in browser.value("location.hash")
    zoomed = browser.value("location.hash")
    assert int(browser.value("document.documentElement.dataset.drawings")) > drawn
    x, y = box["x"] + box["width"] * 0.6, box["y"] + 60
    browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=200, modifiers=2)
    browser.settle()
    assert range_of(browser)[0] > 12
    browser.value(f"document.querySelector('{LARGE}').focus()")
    for key in ("+", "+", "+"):
        browser.key(key)
    assert range_of(browser)[0] < 12
    browser.key("0")
    assert range_of(browser) == (30, 30)
    assert browser.value("document.querySelector('#reset').disabled") is True
    browser.open(page, zoomed)  # the address is enough to see the same again
    assert 7 <= range_of(browser)[0] <= 12


def test_hover_says_exact_figures(browser: Browser, page: Path, shown: dict[str, Any]) -> None:
    browser.open(page)
    browser.value(choose("31"))
    box = browser.box(LARGE)
    for share in (0.11, 0.5, 0.9):
        browser.mouse("mouseMoved", box["x"] + box["width"] * share, box["y"] + box["height"] / 2)
        browser.settle()
        tip = browser.texts("#tip")[0]
        found = re.search(r"2026R(\d{4})\n", tip)
        assert found is not None
        number = int(found[1])
        row = number - (number + 1) // 5  # the row among runs of profile ci
        plain = tip.replace("\u202f", "").replace("\t", " ")
        for name, text in (("value_ns", "max"), ("u_ns", "U"), ("p99_ns", "p99")):
            value = str(figure(shown, "31", name, row)).removesuffix(".0")
            assert f"{text} {value} ns" in plain, (name, plain)
        assert "limit 50000000 ns" in plain


def choose(stream: str) -> str:
    return f"""(() => {{ const s = document.querySelector('#latency select');
      s.value = [...s.options].find(o => o.text.startsWith('stream {stream} ')).value;
      s.dispatchEvent(new Event('change')); }})()"""


def test_a_click_opens_the_run(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.box(".strip")
    browser.value(f"document.querySelectorAll('.strip button')[{OVER_RUN}].focus()")
    browser.key("Enter")
    text = browser.texts("#run")[0]
    assert f"Run 2026R{OVER_RUN:04d}" in text
    first = browser.texts("#run tbody tr")
    worst = next(row for row in first if row.startswith("DAQ-"))
    assert worst.startswith("DAQ-031")
    assert "fail" in worst
    assert browser.value("location.hash") == f"#run=2026R{OVER_RUN:04d}"
    browser.key("Escape")
    assert browser.value("document.querySelector('#run').hidden") is True
    box = browser.box("#health canvas")
    browser.click(box["x"] + box["width"] * 0.6, box["y"] + box["height"] / 2)
    assert "Run 2026R00" in browser.texts("#run")[0]


def test_what_nobody_judged_is_no_pass(browser: Browser, shown: dict[str, Any], tmp_path: Path) -> None:
    """Statistics of RTC-Testbench have values and no verdict."""
    bare: dict[str, Any] = json.loads(json.dumps(shown))
    for series in bare["series"]:
        del series["columns"]["outcome_code"]
    path = tmp_path / "bare.html"
    path.write_text(page_of(bare, script()), encoding="utf-8")
    browser.open(path, "#run=2026R0003")
    rows = [row for row in browser.texts("#run tbody tr") if row.startswith("DAQ-")]
    assert len(rows) == 48
    assert all("not judged" in row for row in rows)
    assert not any("pass" in row for row in rows)
    assert not any("✔" in cell for cell in browser.texts("#latency .cell"))


def test_keyboard_alone_reaches_a_run(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.box(LARGE)
    browser.value(f"document.querySelector('{LARGE}').focus()")
    for key in ("End", "ArrowLeft"):
        browser.key(key)
    spoken = browser.texts("#spoken")[0]
    assert "2026R0027" in spoken  # the last but one of profile ci: 29 is a nightly run
    browser.key("Enter")
    assert "Run 2026R0027" in browser.texts("#run")[0]


def test_events_are_text_only(browser: Browser, page: Path) -> None:
    browser.open(page)
    events = browser.texts("#overview .wide")[0]
    assert EVENT_TEXT in events
    assert "bench change" in events
    assert browser.value("document.querySelectorAll('#overview b').length") == 0
    assert "▲" in events
    assert "key-0 -> key-1" in events
    browser.open(page, f"#run=2026R{SLOWER_FROM:04d}")
    told = browser.texts("#run .event.regression")[0]
    assert EVENT_TEXT in told
    assert "Commits between: aaaaaaaaaaaa bbbbbbbbbbbb." in told


RIGHT_HALF = """(selector => { const c = [...document.querySelectorAll(selector)].at(-1);
  const d = c.getContext('2d').getImageData(c.width / 2, 0, c.width / 2, c.height).data;
  return d.reduce((sum, byte, place) => (sum * 31 + byte * (place % 251 + 1)) % 2147483647, 0); })"""


@pytest.mark.parametrize("selector", ["#overview figure canvas", "#latency .large canvas"])
def test_one_extreme_run_does_not_flatten_the_others(
    browser: Browser, shown: dict[str, Any], tmp_path: Path, selector: str
) -> None:
    """The half of the chart without it is drawn the same, however extreme it is."""
    drawn: list[Any] = []
    for share in (-0.75, -1339.51):
        changed: dict[str, Any] = json.loads(json.dumps(shown))
        changed["runs"]["worst_margin_share"] = [0.3] * 4 + [share] + [0.2 + 0.01 * n for n in range(25)]
        for one in changed["series"]:
            if "limit_upper_ns" in one["columns"]:
                rows = sum(one["runs"][1::2])
                one["columns"]["limit_upper_ns"] = {"c": 1000}
                one["columns"]["margin_ns"] = [300, 300, share * 1000, *range(200, 200 + rows - 3)]
        path = tmp_path / "extreme.html"
        path.write_text(page_of(changed, script()), encoding="utf-8")
        browser.open(path)
        browser.box(selector)
        browser.value(f"[...document.querySelectorAll({json.dumps(selector)})].at(-1).scrollIntoView()")
        browser.settle()
        browser.settle()
        drawn.append(browser.value(f"{RIGHT_HALF}({json.dumps(selector)})"))
    assert drawn[0] == drawn[1] != 0


TEXTS_OF = """(selector => { const c = [...document.querySelectorAll(selector)].at(-1);
  return written.filter(([canvas]) => canvas === c).map(([, text]) => text); })"""
NOTED = """window.written = []; const fill = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
  written.push([this.canvas, text]); fill.call(this, text, ...place); };
"""
"""Notes each text that a canvas gets."""
DURATION = "#health .cell:nth-child(6) canvas"


@pytest.mark.parametrize(
    ("selector", "scale", "extreme_ns", "marked"),
    [
        ("#sync .large > .chart canvas", "linear", {"value_ns": 4e6}, "4 ms"),
        ("#sync .large > .chart canvas", "log", {"value_ns": 4e12}, "4000 s"),
        ("#sync .large > .chart canvas", "linear", {"value_ns": -4e6}, "\N{MINUS SIGN}4 ms"),
        ("#sync .large > .chart canvas", "linear", {"u_ns": 4e6}, "with U 4.001 ms"),
        ("#sync .cell canvas", "linear", {"value_ns": 4e6}, "4 ms"),
        (DURATION, "log", {"duration_ns": 4e6}, "4 ms"),
    ],
)
def test_one_extreme_value_is_marked_and_does_not_flatten_the_others(
    browser: Browser,
    shown: dict[str, Any],
    tmp_path: Path,
    selector: str,
    scale: str,
    extreme_ns: dict[str, float],
    marked: str,
) -> None:
    """The half of the chart without it is drawn the same, however extreme it is; its figure is there."""
    drawn: list[Any] = []
    for share in (0.01, 1):
        changed: dict[str, Any] = json.loads(json.dumps(shown))
        extreme = {name: ns * share for name, ns in extreme_ns.items()}
        for one in changed["series"]:
            if one["measurement"] == "hil_sync":
                rows = sum(one["runs"][1::2])
                one["columns"]["limit_upper_ns"] = {"c": 1100}
                for name, first in (("value_ns", 1000), ("u_ns", 5)):
                    values = [first + float(n % 7) for n in range(rows)]
                    one["columns"][name] = _with(extreme.get(name) if rows > 10 else None, values)
        lengths = [1000.0 + n % 7 for n in range(changed["number_of_runs"])]
        changed["runs"]["duration_ns"] = _with(extreme.get("duration_ns"), lengths)
        path = tmp_path / "extreme.html"
        path.write_text(page_of(changed, NOTED + script()), encoding="utf-8")
        browser.open(path)
        browser.value(
            f"(s => {{ s.value = '{scale}'; s.dispatchEvent(new Event('change')); }})"
            "([...document.querySelectorAll('#sync select')].find(s => s.value === 'log'))"
        )
        browser.value(f"document.querySelector({json.dumps(selector)}).id = 'seen'")
        browser.box("#seen")
        drawn.append(browser.value(f"{RIGHT_HALF}('#seen')"))
    assert drawn[0] == drawn[1] != 0
    assert marked in browser.value(f"{TEXTS_OF}('#seen')")


def _with(extreme: float | None, values: list[float]) -> list[float]:
    return values if extreme is None else [*values[:2], extreme, *values[3:]]


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_three_runs_at_a_new_level_widen_the_axis(
    browser: Browser, shown: dict[str, Any], tmp_path: Path, runs: int
) -> None:
    changed: dict[str, Any] = json.loads(json.dumps(shown))
    lengths = [1000.0 + n % 7 for n in range(changed["number_of_runs"])]
    changed["runs"]["duration_ns"] = [*lengths[:-runs], *[4e6] * runs]
    path = tmp_path / "level.html"
    path.write_text(page_of(changed, NOTED + script()), encoding="utf-8")
    browser.open(path)
    browser.box(DURATION)
    texts = browser.value(f"{TEXTS_OF}({json.dumps(DURATION)})")
    assert ("2 ms" in texts) == (runs == 3), texts


def tile_of_regressions(browser: Browser) -> str:
    return next(text for text in browser.texts("#overview .tiles li") if text.startswith("Regressions"))


@pytest.mark.parametrize(("needed", "few"), [(10, False), (19, True)])
def test_too_few_runs_are_no_statement(
    browser: Browser, shown: dict[str, Any], tmp_path: Path, needed: int, few: bool
) -> None:
    silent: dict[str, Any] = {**shown, "events": [], "change_needs": needed}
    path = tmp_path / "silent.html"
    path.write_text(page_of(silent, script()), encoding="utf-8")
    browser.open(path)
    said = "11 of 19 earlier runs, no statement yet"
    tile, events = tile_of_regressions(browser), browser.texts("#overview .muted")
    assert (said in tile, f"Nothing in view: {said}." in events) == (few, few)
    assert ("\n0\n" in tile) is not few


def test_a_series_without_enough_runs_is_counted(
    browser: Browser, shown: dict[str, Any], tmp_path: Path
) -> None:
    some: dict[str, Any] = json.loads(json.dumps({**shown, "events": [], "change_needs": 10}))
    followed = [one for one in some["series"] if one["earlier_runs"] is not None]
    for one in followed:
        one["earlier_runs"] = 10
    followed[0]["earlier_runs"] = 9
    path = tmp_path / "some.html"
    path.write_text(page_of(some, script()), encoding="utf-8")
    browser.open(path)
    said = f"no statement yet on 1 of {len(followed)} series, with fewer than 10 earlier runs"
    assert said in tile_of_regressions(browser)
    assert f"Nothing in view: {said}." in browser.texts("#overview .muted")


def test_values_of_several_targets_are_told_apart(
    browser: Browser, shown: dict[str, Any], tmp_path: Path
) -> None:
    several: dict[str, Any] = json.loads(json.dumps(shown))
    for target, stack in (("windows", "kernel"), ("linux-rt", "user")):
        for one in (*shown["series"], *(e for e in shown["events"] if e["tags"]["kind"] == "regression")):
            more = json.loads(json.dumps(one))
            more["tags"] |= {"target": target, "stack": stack}
            several["series" if "columns" in one else "events"].append(more)
    path = tmp_path / "several.html"
    path.write_text(page_of(several, script()), encoding="utf-8")
    browser.open(path, f"#run=2026R{SLOWER_FROM:04d}")
    names = browser.texts("#run tbody tr button")
    assert len(names) > 3 * 48
    assert len(set(names)) == len(names)
    events = browser.texts("#overview .wide:first-of-type tbody tr .subject")
    assert len(set(events)) == len(events) == 4, events


def test_filters_axis_and_colours(browser: Browser, page: Path) -> None:
    browser.open(page, "#profile=nightly&axis=runs")
    assert range_of(browser) == (6, 6)
    assert len(browser.texts(".strip button")) == 6
    events = browser.texts("#overview .wide:first-of-type tbody tr")
    assert events[0].endswith("2026R0019")  # the bench changed in run 15, which is not shown
    browser.value(
        "(s => { s.value = 'windows'; s.dispatchEvent(new Event('change')); })"
        "(document.querySelector('#filter-target'))"
    )
    browser.settle()
    assert len(browser.texts("#latency .cell")) == 0
    assert "all that the filters ask for" in browser.texts("#latency > p:last-of-type")[0]
    before = browser.value("getComputedStyle(document.body).backgroundColor")
    for _ in range(2):
        browser.value("document.querySelector('#theme').click()")
    assert browser.texts("#theme") == ["Colours: dark"]
    assert browser.value("getComputedStyle(document.body).backgroundColor") != before
    browser.value("localStorage.clear()")


def test_prints_in_the_inks_of_paper(browser: Browser, page: Path, tmp_path: Path) -> None:
    browser.open(page)
    browser.window(1400, 900, dark=True)
    try:
        browser.settle()
        before = browser.value("document.documentElement.dataset.drawings")
        browser.value(
            "addEventListener('beforeprint', () => { window.printed ="
            " getComputedStyle(document.documentElement).getPropertyValue('--page').trim(); })"
        )
        browser.print(tmp_path / "page.pdf")
        assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
        assert browser.value("window.printed") == "#ffffff"
        browser.settle()
        browser.until(f"document.documentElement.dataset.drawings !== '{before}'")
        assert browser.value("'printing' in document.documentElement.dataset") is False
    finally:
        browser.window(1400, 900)


def test_empty_page_says_what_to_do(browser: Browser, shown: dict[str, Any], tmp_path: Path) -> None:
    empty: dict[str, Any] = {
        **shown,
        "number_of_runs": 0,
        "runs": {},
        "series": [],
        "events": [],
        "facts": [],
    }
    for runs, words in ((0, "make qualify"), (30, "none of those")):
        path = tmp_path / f"{runs}.html"
        path.write_text(
            page_of({**empty, "spool": {**shown["spool"], "runs": runs}}, script()), encoding="utf-8"
        )
        browser.open(path)
        assert words in browser.texts("#empty")[0]


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ("start();", "start(); throw new Error('broken on purpose');"),
        ("context.stroke();", "context.strokes();"),
    ],
)
def test_a_broken_script_fails(
    browser: Browser, shown: dict[str, Any], tmp_path: Path, broken: str, words: str
) -> None:
    assert broken in script()
    path = tmp_path / "broken.html"
    path.write_text(page_of(shown, script().replace(broken, words)), encoding="utf-8")
    with pytest.raises(PageError):
        browser.open(path)
    assert browser.texts("#message")[0].startswith("This page has failed")


def test_a_script_that_is_not_ours_never_runs(browser: Browser, page: Path, tmp_path: Path) -> None:
    path = tmp_path / "tampered.html"
    text = page.read_text(encoding="utf-8")
    added = "<script>window.strange = 1; fetch('http://127.0.0.1:9/');</script></body>"
    path.write_text(text.replace("</body>", added), encoding="utf-8")
    with pytest.raises(PageError, match="Content Security Policy"):
        browser.open(path)
    time.sleep(0.1)
    assert browser.value("window.strange") is None
    assert [url for url in browser.requests if not url.startswith("file:")] == []
