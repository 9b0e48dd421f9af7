# SPDX-License-Identifier: Apache-2.0
"""A latency of one network stack shown as another's is named, by whatever is changed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reports.rejudge.stack_used import stack_discrepancies
from reports.rejudge.version import version_of

Json = dict[str, Any]
STACKS = ("kernel", "kernel-tuned", "rtdip", "user")
LIBRARY = "/run/libbw-accel.so"
SUITE = Path("evidence", "daq_replay", "linux")
MANIFEST: Json = {
    "end_utc": "2026-01-01T00:00:00Z",
    "tools": {"bw-traffic": "bw-traffic 0.2.0"},
    "asked": [
        {"target": "linux", "suite": "daq_replay/latency_budgets.robot", "stack": each} for each in STACKS
    ],
}


def _carrier(stack: str) -> str:
    return {"rtdip": "rtdip", "user": LIBRARY}.get(stack, "kernel")


def _counted(stack: str) -> str | None:
    return {"rtdip": "delivered_frames", "user": "delivered_bytes"}.get(stack)


def _write(path: Path, document: Any) -> None:
    path.write_text(json.dumps(document) + "\n", encoding="utf-8")


def _replay(run: Path, stack: str) -> Path:
    folder = run / SUITE / stack / "attempt-1"
    folder.mkdir(parents=True)
    own = ["--rtdip", "/run/rtdip.sock"] if stack == "rtdip" else []
    programs: Json = {}
    for name, node in (("recv", "t1"), ("send-p01", "p01"), ("send-p02", "p02")):
        result: Json = {"type": "result", "tool": "bw-traffic", "version": "0.2.0", "nonce": f"{stack:0>16}"}
        _write(folder / f"{name}.ndjson", result | {"carrier": _carrier(stack)})
        preload = [LIBRARY] if stack == "user" else []
        programs[name] = {"node": node, "command": ["/run/bw-traffic", name[:4], *own], "preload": preload}
    used: Json = {
        "schema": "benchwright.stack_used/1", "nonce": f"{stack:0>16}", "stack": stack, "receiver": "t1",
        "counted": _counted(stack), "programs": programs,
    }  # fmt: skip
    _write(folder / "stack_used.json", used)
    if counted := _counted(stack):
        end = {counted: 100, "kernel_in_bytes": 10, "kernel_out_bytes": 10}
        proof = {"stack": stack, "receiver": "t1", "ends": dict.fromkeys(("t1", "p01", "p02"), end)}
        _write(folder / "stack_proof.json", proof)
    else:
        (folder.parent / "stack").mkdir()
        _write(folder.parent / "stack" / "stack.ndjson", {"type": "stack", "stack": stack})
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    for stack in STACKS:
        _replay(tmp_path, stack)
    return tmp_path


def _records(run: Path, names: dict[str, str] | None = None) -> list[Json]:
    """Return a record of each replay; `names`: stacks that are called otherwise."""
    return [
        {
            "subject": {"target": "linux", "stack": (names or {}).get(stack, stack)},
            "evidence": [{"path": (SUITE / stack / "attempt-1" / "recv.ndjson").as_posix()}],
        }
        for stack in STACKS
        if (run / SUITE / stack).exists()
    ]


def _told(run: Path, manifest: Json, records: list[Json]) -> list[str]:
    return list(stack_discrepancies(run, manifest, records, version_of(run, manifest)))


def _change(run: Path, stack: str, name: str, new: Callable[[Json], object]) -> None:
    path = run / SUITE / stack / "attempt-1" / name
    document = json.loads(path.read_text())
    new(document)
    _write(path, document)


def _swap(one: Path, other: Path) -> None:
    kept = one.with_name("kept")
    one.rename(kept)
    other.rename(one)
    kept.rename(other)


def test_an_honest_run_has_no_discrepancy(run: Path) -> None:
    assert _told(run, MANIFEST, _records(run)) == []


@pytest.mark.parametrize("one", STACKS)
@pytest.mark.parametrize("other", STACKS)
def test_labels_turned_over_are_named(run: Path, one: str, other: str) -> None:
    told = _told(run, MANIFEST, _records(run, {one: other, other: one}))
    assert bool(told) == (one != other)


@pytest.mark.parametrize("one", STACKS)
@pytest.mark.parametrize("other", STACKS)
def test_exchanged_folders_and_copied_replays_are_named(run: Path, one: str, other: str) -> None:
    if one == other:
        return
    _swap(run / SUITE / one, run / SUITE / other)
    assert _told(run, MANIFEST, _records(run))
    shutil.rmtree(run / SUITE / one)
    shutil.copytree(run / SUITE / other, run / SUITE / one)
    assert _told(run, MANIFEST, _records(run))


CHANGES: dict[str, tuple[str, str, Callable[[Json], object]]] = {
    "proof of another stack": ("user", "stack_proof.json", lambda d: d.update(stack="rtdip")),
    "proof of another receiver": ("user", "stack_proof.json", lambda d: d.update(receiver="p01")),
    "negative counter": ("rtdip", "stack_proof.json", lambda d: d["ends"]["p01"].update(kernel_in_bytes=-1)),
    "an end left out": ("rtdip", "stack_proof.json", lambda d: d["ends"].pop("p02")),
    "other units": ("rtdip", "stack_proof.json", lambda d: d["ends"]["p01"].pop("delivered_frames")),
    "another nonce": ("kernel", "stack_used.json", lambda d: d.update(nonce="0")),
    "another name": ("kernel", "stack_used.json", lambda d: d.update(stack="rtdip")),
    "tuned called kernel": ("kernel-tuned", "stack_used.json", lambda d: d.update(stack="kernel")),
    "another receiver": ("kernel", "stack_used.json", lambda d: d.update(receiver="p01")),
    "nothing counted": ("rtdip", "stack_used.json", lambda d: d.update(counted=None)),
    "a program left out": ("user", "stack_used.json", lambda d: d["programs"].pop("send-p01")),
    "no library": ("user", "stack_used.json", lambda d: d["programs"]["recv"].update(preload=[])),
    "no option": ("rtdip", "stack_used.json", lambda d: d["programs"]["recv"].update(command=["bw-traffic"])),
    "carried otherwise": ("rtdip", "send-p02.ndjson", lambda d: d.update(carrier="kernel")),
    "carrier left out": ("user", "recv.ndjson", lambda d: d.pop("carrier")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_is_named(run: Path, change: str) -> None:
    stack, name, new = CHANGES[change]
    _change(run, stack, name, new)
    told = _told(run, MANIFEST, _records(run))
    assert told
    assert all(f"/{stack}/attempt-1" in each for each in told)


@pytest.mark.parametrize("name", ["stack_proof.json", "stack_used.json"])
def test_a_file_taken_away_is_named(run: Path, name: str) -> None:
    (run / SUITE / "rtdip" / "attempt-1" / name).unlink()
    told = _told(run, MANIFEST, _records(run))
    assert any(f"{name} is missing" in each for each in told)


def test_a_run_is_not_of_an_earlier_version_by_its_manifest_alone(run: Path) -> None:
    (run / SUITE / "kernel" / "attempt-1" / "stack_used.json").unlink()
    for name in ("recv", "send-p01", "send-p02"):
        _change(run, "kernel", f"{name}.ndjson", lambda d: d.pop("carrier"))
    older = MANIFEST | {"tools": {"bw-traffic": "bw-traffic 0.1.0"}}
    assert _told(run, older, _records(run))


def test_a_run_of_an_earlier_version_has_nothing_of_it(run: Path) -> None:
    for stack in STACKS:
        (run / SUITE / stack / "attempt-1" / "stack_used.json").unlink()
        for name in ("recv", "send-p01", "send-p02"):
            _change(run, stack, f"{name}.ndjson", lambda d: (d.pop("carrier"), d.update(version="0.1.0")))
    older = MANIFEST | {"tools": {"bw-traffic": "bw-traffic 0.1.0"}}
    assert _told(run, older, _records(run)) == []
