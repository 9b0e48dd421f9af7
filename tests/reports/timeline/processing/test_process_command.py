# SPDX-License-Identifier: Apache-2.0
"""The file of a graph is part of its run: computed again it gives the same bytes, or says what differs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from reports.__main__ import main
from reports.timeline.export_ctf import write_ctf
from reports.timelines import timelines_of_run
from tests.reports.timeline.processing.graph_sample import GRAPH, PLACE, files_of, processed


def test_a_graph_is_kept_in_its_run_and_computed_again(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = run / "evidence/timeline/late"
    assert processed(run) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"{kept}: 10 results"
    files = files_of(kept)
    assert sorted(files) == [
        "filters/ours.py",
        "late.toml",
        "processing.json",
        *sorted(
            f"results/{name}"
            for name in (
                *("again/metadata", "again/stream-0", "again/stream-1", "clocks.jsonl", "cpu.csv"),
                *("picture.svg", "story.txt", "table.csv", "trace/nodes.tar", "trace/timeline.pftrace"),
            )
        ),
    ]
    assert files["late.toml"].decode() == GRAPH
    assert str(run.parents[1]).encode() not in b"".join(files.values())
    table = files["results/table.csv"].decode().splitlines()
    once, twice = (dict(zip(table[0].split(","), row.split(","), strict=True)) for row in table[1:])
    assert int(once["count"]) > 10
    assert int(twice["max"]) == 2 * int(once["max"]) > 2 * 15_000_000
    hashes = json.loads(files["processing.json"])
    assert "evidence/realtime_ethernet/linux-rt/traced-64-ring.gz" in hashes["inputs"]
    assert f"evidence/{PLACE}/misses.ndjson" in hashes["inputs"]
    assert hashes["left_out"] == {"threads": ["3 events: CPU 3: its buffer had no room"]}
    for again in (["--recompute"], []):
        assert main(["timeline", str(run), *again]) == 0
        assert capsys.readouterr().out.splitlines()[-2:] == [
            f"{kept}: 10 results computed again: the same bytes",
            "  left out: threads: 3 events: CPU 3: its buffer had no room",
        ]
    assert processed(run) == 0
    assert "computed again: the same bytes" in capsys.readouterr().out
    assert files_of(kept) == files
    assert [path.name for path in kept.parent.iterdir()] == ["late"]


def test_exports_of_a_graph_are_those_of_the_timeline(run: Path, tmp_path: Path) -> None:
    assert processed(run, "--output", str(tmp_path / "out")) == 0
    [timeline] = [each for each in timelines_of_run(run)[0] if each.place == PLACE]
    write_ctf(replace(timeline, place="again"), tmp_path / "ctf")
    assert files_of(tmp_path / "out/results/again") == files_of(tmp_path / "ctf")


def test_a_changed_byte_of_input_or_result_is_found(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert processed(run) == 0
    misses = run / "evidence" / PLACE / "misses.ndjson"
    whole = misses.read_bytes()
    misses.write_bytes(whole + b"\n")
    capsys.readouterr()
    assert main(["timeline", str(run), "--recompute"]) in (1, 2)
    misses.write_bytes(whole)
    plan = run / "evidence" / PLACE / "known_delay.json"
    whole = plan.read_bytes()
    plan.write_bytes(whole.rstrip() + b" \n\n")
    capsys.readouterr()
    assert main(["timeline", str(run), "--recompute"]) == 1
    said = capsys.readouterr().out
    assert f"processing.json: evidence/{PLACE}/known_delay.json has changed" in said
    assert "late: results/" not in said
    plan.write_bytes(whole)
    assert main(["timeline", str(run), "--recompute"]) == 0
    table = run / "evidence/timeline/late/results/table.csv"
    data = bytearray(table.read_bytes())
    data[-3] ^= 1
    table.write_bytes(data)
    (table.parent / "cpu.csv").unlink()
    (table.parent / "more.csv").write_text("")
    capsys.readouterr()
    assert processed(run) == 1
    said = capsys.readouterr().out
    for each in ("cpu.csv: was not there", "more.csv: is not computed any more", "table.csv: other bytes"):
        assert f"late: results/{each}" in said


def test_a_graph_whose_hashes_or_file_are_gone_is_not_passed_over(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert processed(run) == 0
    kept = run / "evidence/timeline/late"
    (kept / "processing.json").unlink()
    assert main(["timeline", str(run)]) == 1
    assert "late: processing.json: was not there" in capsys.readouterr().out
    (kept / "late.toml").unlink()
    assert main(["timeline", str(run)]) == 2
    assert "late.toml: No such file or directory" in capsys.readouterr().err


def test_a_finalised_run_keeps_its_graph_and_takes_no_other(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert processed(run) == 0
    assert main(["finish", str(run)]) == 0
    before = files_of(run)
    assert "evidence/timeline/late/results/table.csv" in before["SHA256SUMS"].decode()
    capsys.readouterr()
    main(["verify", str(run)])
    assert "evidence/timeline" not in capsys.readouterr().out  # it objects to other files of this sample
    assert main(["timeline", str(run), "--recompute"]) == 0
    assert processed(run) == 0
    (tmp_path / "late.toml").rename(tmp_path / "other.toml")
    capsys.readouterr()
    other = ["timeline", str(run), "--process", str(tmp_path / "other.toml")]
    assert main(other) == 2
    assert "the run is finalised; it must not change: give --output FOLDER" in capsys.readouterr().err
    (run / "evidence/timeline/other").mkdir()
    assert main(other) == 2
    (run / "evidence/timeline/other").rmdir()
    out = ["--output", str(tmp_path / "out")]
    assert main([*other, *out]) == 0
    assert main([*other, *out]) == 0
    assert "computed again: the same bytes" in capsys.readouterr().out
    assert files_of(run) == before
    (tmp_path / "out" / "results" / "cpu.csv").write_text("")
    assert main([*other, *out]) == 1


def test_what_cannot_be_is_refused(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("kept")
    for options, says in (
        (["--recompute"], "holds no graph: --process FILE.toml computes one"),
        (["--output", "x"], "--output goes with --export or --process"),
        (["--export", "ctf"], "--export needs --output PATH"),
        (["--process", str(tmp_path / "none.toml")], "none.toml: No such file or directory"),
        (["--process", str(tmp_path / "site")], "site: must be called NAME.toml"),
        (["--process", str(tmp_path / "attempt-1.toml")], "attempt-1.toml: must be called NAME.toml"),
    ):
        assert main(["timeline", str(run), *options]) == 2
        assert says in capsys.readouterr().err
    for output, says in (
        (tmp_path / "full", "is not empty, and holds no results of a graph"),
        (run / "evidence" / "out", "lies in the run folder"),
        (tmp_path / "late.toml", "exists and is no folder"),
    ):
        assert processed(run, "--output", str(output)) == 2
        assert says in capsys.readouterr().err
    assert not (run / "evidence/timeline").exists()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("*/attempt-9", "*", "late.toml:4: steps.events: timeline *: 3 match, one has to (found: "),
        ("within_ns = 1", "least_ns = 2_000_000_000, within_ns = 1", "late.toml:7: steps.ways: least_ns: "),
        (
            "evidence/realtime_ethernet/linux-rt/",
            "evidence/",
            "late.toml:20: steps.threads: evidence/traced-64",
        ),
        (
            "evidence/realtime_ethernet",
            "/etc",
            "late.toml:20: steps.threads: /etc/linux-rt/traced-64-ring.gz: lies",
        ),
        ('folder = "site"', 'folder = "none"', "folder none: no *.py in it"),
    ],
)
def test_a_step_that_cannot_be_computed_is_named(
    run: Path, old: str, new: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert old in GRAPH
    (run.parents[1] / "late.toml").write_text(GRAPH.replace(old, new))
    assert processed(run) == 2
    assert f"reports: {says}" in capsys.readouterr().err
    assert not (run / "evidence/timeline").exists()


def test_a_damaged_recording_is_named(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ring = run / "evidence/realtime_ethernet/linux-rt/traced-64-ring.gz"
    ring.write_bytes(ring.read_bytes()[:-9])
    assert processed(run) == 2
    assert "reports: late.toml:20: steps.threads: traced-64-ring.gz: " in capsys.readouterr().err
