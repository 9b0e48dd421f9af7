# SPDX-License-Identifier: Apache-2.0
"""What is in the page is what is in the store, no more, no less, and the same each time."""

from __future__ import annotations

import html.parser
import json
import shutil
from pathlib import Path
from typing import Any, cast

import pytest

from dashboards.__main__ import main
from dashboards.points import EVENT, RUN, VERDICT
from dashboards.store import Store
from dashboards.trends import Selection, render
from dashboards.trends.columns import Scalar, column, spans
from dashboards.trends.content import DERIVED, OF_THE_RUN, SAID_IN_NS
from tests.dashboards.stored import stored_points
from tests.dashboards.trends.history import DAY_NS, FIRST_NS, OVER_RUN, STREAM_OVER


def page(store: Path, **chosen: Any) -> str:
    with Store(store, create=False) as opened:
        return render(opened, Selection(**chosen))


class Page(html.parser.HTMLParser):
    """Collects the data of a page and whatever in it leads elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.data, self.links, self._inside = "", list[str](), False
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note scripts, links and whatever would run."""
        given = dict(attrs)
        self._inside = tag == "script" and given.get("id") == "data"
        if tag == "script":
            self.scripts.append(given.get("type") or "")
        self.links += [v or "" for k, v in attrs if k in ("src", "href", "srcset", "action", "data", "style")]
        self.links += [k for k, _ in attrs if k.startswith("on")]

    def handle_data(self, data: str) -> None:
        """Take the data."""
        if self._inside:
            self.data += data

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002
        """Note the end of the data."""
        self._inside = False


def data_of(text: str) -> dict[str, Any]:
    return json.loads(Page(text).data)


def expand(packed: Any, rows: int) -> list[Scalar]:
    if isinstance(packed, list):
        return cast("list[Scalar]", packed)
    if "c" in packed:
        return [packed["c"]] * rows
    pairs = zip(packed["r"][::2], packed["r"][1::2], strict=True)
    return [value for value, number in pairs for _ in range(number)]


def places(packed: list[int]) -> list[int]:
    pairs = zip(packed[::2], packed[1::2], strict=True)
    return [first + k for first, number in pairs for k in range(number)]


Rows = dict[tuple[str, str], dict[str, Scalar]]


def rows_of(shown: dict[str, Any]) -> Rows:
    """Return fields by tags and run id."""
    ids = expand(shown["runs"]["run_id"], shown["number_of_runs"])
    found: Rows = {}
    for series in shown["series"]:
        runs = places(series["runs"])
        columns = {name: expand(packed, len(runs)) for name, packed in series["columns"].items()}
        for row, run in enumerate(runs):
            fields = {name: values[row] for name, values in columns.items() if values[row] is not None}
            found[json.dumps(series["tags"], sort_keys=True), str(ids[run])] = fields
    return found


def assert_holds(shown: dict[str, Any], store: Path) -> int:
    """Check every field of every point of the store against the page; return how many there were."""
    rows, count = rows_of(shown), 0
    with Store(store) as opened:
        points = [point for point in stored_points(opened) if point.measurement not in (RUN, EVENT)]
    for point in points:
        measurement = point.measurement
        row = rows[json.dumps(point.tags, sort_keys=True), point.run_id]
        for name, value in point.fields.items():
            count += 1
            if name in OF_THE_RUN:
                continue
            if name == DERIVED and "limit_upper_ns" in row:
                assert row["margin_ns"] / abs(row["limit_upper_ns"]) == pytest.approx(value)  # type: ignore[operator,arg-type]
            elif measurement == VERDICT and SAID_IN_NS.get(name) in row:
                factor = 1e9 if row["unit"] == "s" else 1
                assert row[SAID_IN_NS[name]] == pytest.approx(value * factor, rel=1e-12), name
            else:
                assert row[name] == value, name
    return count


def test_page_holds_every_value_of_the_store(small: Path) -> None:
    shown = data_of(page(small))
    assert assert_holds(shown, small) > 30_000
    ids = expand(shown["runs"]["run_id"], 30)
    with Store(small) as store:
        points = stored_points(store)
    for point in (point for point in points if point.measurement == RUN):
        at = ids.index(point.run_id)
        for name, value in point.fields.items():
            assert expand(shown["runs"][name], 30)[at] == value
    kinds = [event["tags"]["kind"] for event in shown["events"]]
    assert sorted(kinds) == ["bench-change", "regression"]
    assert shown["spool"]["waiting"] == len(points)


def test_a_value_that_was_changed_is_found(small: Path) -> None:
    """The check above can fail."""
    shown = data_of(page(small))
    packed = next(s for s in shown["series"] if "p99_ns" in s["columns"])["columns"]
    packed["u_ns"] = {"c": 1}
    with pytest.raises(AssertionError):
        assert_holds(shown, small)


def test_same_store_same_bytes(small: Path) -> None:
    first = page(small)
    with Store(small) as store:
        store.connection.execute("VACUUM")  # the file differs, what is in it does not
    assert page(small) == first


def test_nothing_leads_out_of_the_page(small: Path) -> None:
    text = page(small)
    found = Page(text)
    assert found.scripts == ["application/json", ""]
    assert all(link.startswith("#") for link in found.links), found.links
    assert "default-src 'none'; script-src 'sha256-" in text
    outside = text.replace(found.data, "").replace("http://www.w3.org/2000/svg", "")
    for word in (
        "http:",
        "https:",
        "//cdn",
        "@import",
        "url(",
        "fetch(",
        "XMLHttpRequest",
        "WebSocket",
        "eval(",
    ):
        assert word not in outside, word


@pytest.mark.parametrize(
    ("chosen", "runs"),
    [
        ({"profile": "nightly"}, 6),
        ({"target": "windows"}, 30),
        ({"since_ns": 1_790_000_000_123_456_000 + 25 * 86_400_000_000_000}, 5),
        ({"bench": "virtual", "branch": "main", "profile": "ci"}, 24),
    ],
)
def test_only_what_was_asked_for(small: Path, chosen: dict[str, Any], runs: int) -> None:
    shown = data_of(page(small, **chosen))
    assert shown["number_of_runs"] == runs
    assert shown["selection"] == chosen
    for series in shown["series"]:
        assert max(places(series["runs"])) < runs
        assert all(
            series["tags"].get(name) == chosen[name] for name in ("profile", "target") if name in chosen
        )
    assert all(event["run"] < runs for event in shown["events"])


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--bench", "rack-7"], 2, "no run of the store has bench 'rack-7'; it has virtual"),
        (["--target", "toaster"], 2, "it has linux-rt, windows"),
        (["--profile", "soak"], 2, "it has ci, nightly"),
        (["--branch", "release"], 2, "it has main"),
        (["--since", "yesterday"], 2, "'yesterday' is neither 2026-01-31 nor"),
        (["--output", "/proc/nowhere/page.html"], 5, "/proc/nowhere/page.html: "),
    ],
)
def test_bad_arguments(
    small: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    words: str,
) -> None:
    output = ["--output", str(tmp_path / "page.html")]
    assert main(["trends", "--store", str(small), *output, *arguments]) == code
    assert words in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_command_writes_the_page(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "new" / "page.html"
    assert main(["trends", "--store", str(small), "--output", str(output), "--profile", "ci"]) == 0
    assert capsys.readouterr().out.startswith(f"{output}: 24 runs, ")
    assert output.read_text(encoding="utf-8") == page(small, profile="ci")


def test_store_that_is_not_there_or_damaged(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, output = tmp_path / "store.sqlite", tmp_path / "page.html"
    arguments = ["trends", "--store", str(store), "--output", str(output)]
    assert main(arguments) == 5
    assert "no store; a run or" in capsys.readouterr().err
    store.write_text("no database " * 100)
    assert main(arguments) == 5
    store.unlink()
    shutil.copyfile(small, store)
    with Store(store) as opened:
        opened.connection.execute("UPDATE run SET content = substr(content, 1, 40) WHERE number = 7")
    assert main(arguments) == 5
    assert f"{store}: damaged: " in capsys.readouterr().err
    whole = store.read_bytes()
    for name in ("-wal", "-shm"):
        (tmp_path / (store.name + name)).unlink(missing_ok=True)
    store.write_bytes(whole[: len(whole) // 2])
    assert main(arguments) == 5
    assert not output.exists()


def test_empty_store_gives_a_page(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    Store(store).close()
    shown = data_of(page(store))
    assert (shown["number_of_runs"], shown["series"], shown["events"]) == (0, [], [])
    with pytest.raises(Exception, match="it has none"):
        page(store, bench="virtual")


def test_a_change_of_the_bench_is_kept_without_the_run_that_showed_it(small: Path) -> None:
    whole = data_of(page(small))
    change = next(e for e in whole["events"] if e["tags"]["kind"] == "bench-change")
    assert change["run"] == 15  # a run of profile ci
    nightly = data_of(page(small, profile="nightly"))
    moved = next(e for e in nightly["events"] if e["tags"]["kind"] == "bench-change")
    ids = expand(nightly["runs"]["run_id"], 6)
    assert ids[moved["run"]] == "2026R0019"
    assert moved["fields"] == change["fields"]


def test_history_is_that_of_the_adviser(small: Path) -> None:
    """Runs on the last bench and since the last change, those before `--since` too."""
    for chosen in ({}, {"since_ns": FIRST_NS + 25 * DAY_NS}):
        shown = data_of(page(small, **chosen))
        told = {
            one["tags"]["stream"]: one["earlier_runs"]
            for one in shown["series"]
            if one["tags"].get("stream") and one["tags"]["profile"] == "ci"
        }
        # Runs of profile ci on the second bench are 15..18, 20..23, 25..28, the slower stream's from 20 on.
        assert told.pop(STREAM_OVER) == 7, chosen
        assert set(told.values()) == {11}, chosen
        assert shown["change_needs"] == 19


def test_columns_keep_type_and_value() -> None:
    for values in (
        [1.5, None, 2],
        [True] * 9,
        [True, 1, 1.0] * 4,
        [0.1] * 20 + [None] * 20,
        ["a"] * 8 + ["b"],
    ):
        again = expand(json.loads(json.dumps(column(values))), len(values))
        assert again == values
        assert [type(v) is bool for v in again] == [type(v) is bool for v in values]
    assert spans([0, 1, 2, 5, 7, 8]) == [0, 3, 5, 1, 7, 2]
    assert places(spans([3, 4, 9])) == [3, 4, 9]


def test_failed_run_keeps_its_outcome(small: Path) -> None:
    shown = data_of(page(small))
    outcomes = expand(shown["runs"]["outcome"], 30)
    assert [n for n, outcome in enumerate(outcomes) if outcome == "fail"] == [OVER_RUN]
