# SPDX-License-Identifier: Apache-2.0
"""A run is judged a second time: what was changed in it is named, whatever its hashes say."""

from __future__ import annotations

import ast
import hashlib
import json
import random
import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from reports.__main__ import main
from reports.rejudge.run import RejudgeResult, rejudge
from reports.run.folder import MANIFEST, MEASUREMENTS
from reports.run.integrity import SUMS, changed_files, write_sums
from tests.reports.sample_run import Disturbance, make_run, make_run_of_targets

ROOT = Path(__file__).resolve().parents[3]
MS = 1_000_000
REPLAY = "evidence/daq_replay/attempt-1"
LATE = Disturbance(path_delay_ns={33: 15 * MS}, stalled=True)

RECORD = (
    "value", "n", "lost", "allowed_lost", "margin", "outcome", "requirement", "quantity", "simulated",
    "rule", "schema", "run_id", "limit.upper", "limit.source", "uncertainty.expanded",
    "uncertainty.parts.0.value", "uncertainty.parts.1.name", "uncertainty.parts.0.kind", "subject.bench",
    "subject.stack", "conditions.profile", "conditions.load", "conditions.phase", "evidence.0.sha256",
    "time_utc",
)  # fmt: skip
CONSUMER = (
    "complete", "valid", "phase", "streams.{}.expected", "streams.{}.received", "streams.{}.lost",
    "streams.{}.misses", "streams.{}.received_minus_scheduled.max_ns",
    "streams.{}.received_minus_scheduled.n", "streams.{}.received_minus_scheduled.mean_ns",
    "streams.{}.received_minus_scheduled.stddev_ns", "streams.{}.received_minus_scheduled.p99_ns",
    "streams.{}.received_minus_scheduled.buckets.{}.1", "streams.{}.received_minus_scheduled.buckets.{}.2",
    "streams.{}.sent_minus_scheduled.buckets.{}.0", "streams.{}.received_minus_sent.n",
    "streams.{}.received_minus_sent.min_ns", "streams.{}.invalid_samples", "clocks.0.bound_ns",
    "clocks.0.residual_ns", "clocks.0.kept", "clocks.0.name",
)  # fmt: skip
PRODUCER = (
    "complete", "streams.0.sent", "streams.0.scheduled", "streams.0.sent_minus_scheduled.n",
    "streams.0.sent_minus_scheduled.max_ns", "streams.0.sent_minus_scheduled.buckets.{}.2",
)  # fmt: skip
MANIFEST_KEYS = (
    "run_id",
    "bench",
    "profile",
    "simulated",
    "counts.pass",
    "counts.fail",
    "counts.inconclusive",
)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run whose stream 33 has misses, with the requirements that it was judged by."""
    run = make_run(tmp_path_factory.mktemp("run"), LATE, close=False)
    kept = run.evidence_folder("requirements")
    shutil.copy(ROOT / "robot" / "daq_replay" / "requirements" / "daq12.toml", kept)
    run.close()
    run.finalise()
    assert rejudge(run.path) == RejudgeResult((), (), 48, 48)
    return run.path


@pytest.fixture
def run(original: Path) -> Generator[Path]:
    """Return the run; what a test changes in it is as before afterwards."""
    before = {path: path.read_bytes() for path in original.rglob("*") if path.is_file()}
    yield original
    for path, data in before.items():
        if path.read_bytes() != data:
            path.write_bytes(data)


def test_a_text_may_hold_what_separates_lines_elsewhere(run: Path) -> None:
    """As one that was copied from a page: TOML allows it, and a record stays one line."""
    for file in (run / MEASUREMENTS, run / "evidence" / "requirements" / "daq12.toml"):
        text = file.read_text("utf-8")
        assert "Table 1" in text
        file.write_text(text.replace("Table 1", "Table\u20281\u2029\x85"), "utf-8")
    assert rejudge(run) == RejudgeResult((), (), 48, 48)


def hash_anew(run: Path) -> None:
    """Make the hashes in the records fit again, as a forger would."""
    records: list[dict[str, Any]] = [
        json.loads(line) for line in (run / MEASUREMENTS).read_text().splitlines()
    ]
    for record in records:
        for evidence in record["evidence"]:
            evidence["sha256"] = hashlib.sha256((run / evidence["path"]).read_bytes()).hexdigest()
    (run / MEASUREMENTS).write_text("".join(json.dumps(record) + "\n" for record in records))


def change(document: Any, path: str, rng: random.Random) -> None:
    """Change one value; `{}` in its path is any element."""
    *way, last = path.split(".")
    inner = document
    for step in way:
        index = rng.randrange(len(inner)) if step == "{}" else int(step) if step.isdigit() else step
        inner = inner[index]
    key = int(last) if last.isdigit() else last
    before = inner[key]
    if isinstance(before, bool):
        inner[key] = not before
    elif isinstance(before, int | float):
        inner[key] = before + rng.choice((-1, 1)) * max(2, abs(int(before)) // rng.choice((2, 5)))
    elif before is None:
        inner[key] = 1
    else:
        inner[key] = f"{before}x" if before not in ("pass", "inconclusive") else "fail"


def change_in_lines(path: Path, key: str, rng: random.Random, *, any_line: bool) -> None:
    """Change one value of a line of JSON: of any, or of the last."""
    lines = path.read_text().splitlines()
    place = rng.randrange(len(lines)) if any_line else len(lines) - 1
    document = json.loads(lines[place])
    change(document, key, rng)
    lines[place] = json.dumps(document)
    path.write_text("\n".join(lines) + "\n")


def change_requirement(path: Path, rng: random.Random) -> None:
    lines = path.read_text().splitlines()
    keys = ("id =", "upper_us", "lost", "statistic", "quantity", "stream =", "source")
    place = rng.choice([n for n, line in enumerate(lines) if line.startswith(keys)])
    key, _, value = lines[place].partition("=")
    lines[place] = f"{key}= {int(value) + 7}" if value.strip().isdigit() else f'{key}= "another"'
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("seed", range(100))
def test_a_single_changed_value_is_named_though_all_hashes_fit(run: Path, seed: int) -> None:
    rng = random.Random(seed)
    kind = ("record", "consumer", "producer", "manifest", "requirement")[seed % 5]
    if kind == "record":
        change_in_lines(run / MEASUREMENTS, rng.choice(RECORD), rng, any_line=True)
    elif kind == "consumer":
        change_in_lines(run / REPLAY / "recv.ndjson", rng.choice(CONSUMER), rng, any_line=False)
    elif kind == "producer":
        file = rng.choice(sorted((run / REPLAY).glob("send-*.ndjson")))
        change_in_lines(file, rng.choice(PRODUCER), rng, any_line=False)
    elif kind == "manifest":
        document = json.loads((run / MANIFEST).read_text())
        change(document, rng.choice(MANIFEST_KEYS), rng)
        (run / MANIFEST).write_text(json.dumps(document))
    else:
        change_requirement(run / "evidence" / "requirements" / "daq12.toml", rng)
    if kind != "record":
        hash_anew(run)
    assert rejudge(run).problems


def test_a_record_that_was_beautified_is_named_with_both_values(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From 15 ms to 4, margin and outcome as they would be then, all hashes made anew."""
    records = [json.loads(line) for line in (run / MEASUREMENTS).read_text().splitlines()]
    record = next(record for record in records if record["requirement"] == "DAQ-033")
    before = record["value"]
    u, upper = record["uncertainty"]["expanded"], record["limit"]["upper"]
    record |= {"value": 4 * MS, "margin": upper - u - 4 * MS, "outcome": "pass", "reason": ""}
    (run / MEASUREMENTS).write_text("".join(json.dumps(each) + "\n" for each in records))
    manifest = json.loads((run / MANIFEST).read_text())
    manifest["counts"] |= {"pass": 48, "inconclusive": 0}
    (run / MANIFEST).write_text(json.dumps(manifest))
    hash_anew(run)
    (run / SUMS).unlink()
    write_sums(run)
    assert changed_files(run) == []
    assert main(["verify", str(run)]) == 1
    assert "DAQ-033: value is 4000000" in capsys.readouterr().out
    assert rejudge(run).problems == (
        f"DAQ-033: value is {4 * MS}, the evidence says {before}",
        "DAQ-033: pass, its replays come to no verdict",
    )


@pytest.mark.parametrize(
    "disturbances",
    [
        (LATE, Disturbance()),
        (Disturbance(lost={12: 6}),),
        (Disturbance(generator_delay_ns={13: 20 * MS}),),
        (Disturbance(path_delay_ns={33: 21 * MS}, stalled=True),),
        (Disturbance(clock_step_ns=3 * MS),),
        (Disturbance(complete=False),),
    ],
)
def test_what_the_bench_judged_is_judged_alike(tmp_path: Path, disturbances: tuple[Disturbance, ...]) -> None:
    run = make_run(tmp_path, *disturbances)
    count = len(run.records().measurements)
    assert rejudge(run.path) == RejudgeResult((), (), count, count)


def test_each_of_several_targets_is_judged_again(tmp_path: Path) -> None:
    run = make_run_of_targets(tmp_path)
    count = len(run.records().measurements)
    assert rejudge(run.path) == RejudgeResult((), (), count, count)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (f"{REPLAY}/recv.ndjson", "{}\n"),
        (f"{REPLAY}/plan.toml", "[run"),
        (f"{REPLAY}/misses.ndjson", '{"stream":33}\n'),
        (f"{REPLAY}/witness.ndjson", '{"type":"result","windows":3}\n'),
        (MANIFEST, "[]"),
        (MEASUREMENTS, "not a record\n"),
        (MEASUREMENTS, '{"requirement":"DAQ-033"}\n'),
        ("evidence/requirements/daq12.toml", "requirement = 3\n"),
    ],
)
def test_what_cannot_be_read_is_a_problem_and_no_traceback(run: Path, name: str, text: str) -> None:
    (run / name).write_text(text)
    assert rejudge(run).problems


def test_it_shares_nothing_with_what_writes_records() -> None:
    for file in (ROOT / "reports" / "rejudge").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                top = name.split(".")[0]
                assert top not in ("resources", "hw", "dashboards", "scope"), f"{file.name}: {name}"
                assert top != "reports" or name.startswith("reports.rejudge"), f"{file.name}: {name}"


def test_a_clock_is_known_no_better_than_its_exchanges_allow(run: Path) -> None:
    path = run / REPLAY / "recv.ndjson"
    *before, last = path.read_text().splitlines()
    answer = json.loads(last)
    clock = answer["clocks"][0]
    clock["bound_ns"] = clock["rtt_min_ns"] // 2 - 1
    path.write_text("\n".join([*before, json.dumps(answer)]) + "\n")
    said = f"clock {clock['name']}: bound_ns is {clock['bound_ns']}, half its shortest round trip leaves"
    assert [each for each in rejudge(run).contradicted if said in each]
