# SPDX-License-Identifier: Apache-2.0
"""Before a run, what its machines need is made: not more, side by side, and a failure ends it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from hw.bench import BenchSpec, load_bench
from hw.errors import BenchError
from hw.virtual import prepare, windows_prefix

BARRIER_S = 60


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache without anything, on a machine with Wine."""
    monkeypatch.setenv("BENCHWRIGHT_CACHE", str(tmp_path))
    monkeypatch.setattr(windows_prefix, "wine_version", lambda: "wine-0")


@pytest.fixture
def virtual(repository: Path) -> BenchSpec:
    """The virtual bench."""
    return load_bench(repository / "hw/benches/virtual.yaml")


@pytest.mark.parametrize(
    ("targets", "made"),
    [
        (["linux-rt", "embedded", "windows"], {"linux-rt", "embedded", "windows"}),
        (["linux-rt"], {"linux-rt"}),
        (["windows"], {"linux-rt", "windows"}),
        (["linux"], {"linux-rt"}),
    ],
)
def test_machines_of_targets_that_are_not_taken_stay_off(
    virtual: BenchSpec, targets: list[str], made: set[str]
) -> None:
    assert set(prepare.missing(virtual, targets)) == made, "its impairment node and producers are guests, too"


def test_the_native_bench_needs_nothing(repository: Path) -> None:
    assert not prepare.missing(load_bench(repository / "hw/benches/native.yaml"), ["linux"])


def test_what_is_there_is_not_made(virtual: BenchSpec, tmp_path: Path) -> None:
    (tmp_path / "windows" / windows_prefix.digest()).mkdir(parents=True)
    assert set(prepare.missing(virtual, ["windows"])) == {"linux-rt"}


def test_all_are_made_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    both = threading.Barrier(2)

    def make(say: prepare.Progress) -> None:
        both.wait(BARRIER_S)  # passed only by two at once
        say("packing")

    prepare.prepare({"one": make, "two": make})
    said = capsys.readouterr()
    assert "images    one, two (once" in said.out
    assert "images    ready after" in said.out
    assert sorted(said.err.splitlines()) == ["images    one: packing", "images    two: packing"]


def test_a_failure_is_told() -> None:
    def fail(_say: prepare.Progress) -> None:
        raise BenchError("mmdebstrap failed")

    with pytest.raises(BenchError, match="mmdebstrap failed"):
        prepare.prepare({"one": fail, "two": lambda _say: None})


def test_nothing_is_said_where_nothing_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    prepare.prepare({})
    assert capsys.readouterr().out == ""
