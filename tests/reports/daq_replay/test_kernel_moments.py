# SPDX-License-Identifier: Apache-2.0
"""Who had the target's processors while a message was late, by a made-up ring of its kernel."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from reports.daq_replay.excerpts import Excerpt, ReplayExcerpts, excerpts_of_run, narrated
from reports.daq_replay.kernel_moments import KERNEL_RING
from reports.timeline.kernel_recording import write_recording
from tests.reports.sample_run import Disturbance, write_evidence
from tests.reports.timeline.ring_pages import Machine, Page

MS = 1_000_000
TAI_MINUS_MONOTONIC_NS = 1_794_000_000_000_000_037


def _replay(run: Path) -> Path:
    folder = run / "evidence" / "daq_replay" / "linux-rt" / "attempt-1"
    folder.mkdir(parents=True)
    write_evidence(folder, Disturbance(path_delay_ns={33: 15 * MS}), seed=3)
    return folder


def _answer(folder: Path, **changes: Any) -> None:
    """Let the consumer say how its clocks differ."""
    *lines, last = (folder / "recv.ndjson").read_text().splitlines()
    known = {
        "tai_minus_monotonic_ns": TAI_MINUS_MONOTONIC_NS,
        "tai_minus_monotonic_error_ns": 10_000,
    }
    (folder / "recv.ndjson").write_text(
        "\n".join([*lines, json.dumps(json.loads(last) | known | changes)]) + "\n"
    )


def _record(folder: Path, due_tai_ns: int, begin_ms: int = -60) -> None:
    """Write a ring: from 2 to 11 ms after the message was due another program's thread runs."""
    it, due_ns = Machine(), due_tai_ns - TAI_MINUS_MONOTONIC_NS
    page = Page(it, due_ns + begin_ms * MS)
    at_ms = begin_ms
    for ms, comm, pid in (
        (begin_ms, b"swapper/3", 0), (2, b"hog-x7", 4242), (5, b"other", 77), (6, b"hog-x7", 4242),
        (11, b"swapper/3", 0), (14, b"bw-traffic", 99), (20, b"swapper/3", 0),
    ):  # fmt: skip
        if ms >= at_ms:
            page.event((ms - at_ms) * MS, it.switch(comm, pid))
            at_ms = ms
    raw = folder / "cpu3"
    raw.write_bytes(page.packed())
    write_recording(folder / KERNEL_RING, it.description(), {3: raw})
    raw.unlink()


def _found(run: Path) -> tuple[ReplayExcerpts, Excerpt]:
    [replay] = excerpts_of_run(run)
    return replay, next(each for each in replay.worst if each.message.stream == 33)


def test_thread_that_had_the_processor_is_named(tmp_path: Path) -> None:
    folder = _replay(tmp_path)
    _answer(folder)
    _record(folder, _found(tmp_path)[1].due_tai_ns)
    replay, excerpt = _found(tmp_path)
    assert not replay.problems
    [moment] = [each for each in excerpt.moments if "thread" in each.what]
    assert moment.where == "target, CPU 3"
    assert moment.what == "thread hog-x7 (4242) had it for 8 ms"
    assert abs(moment.at_ns - 2 * MS) < 10
    assert abs((moment.until_ns or 0) - 11 * MS) < 10
    lines = narrated(excerpt)
    assert any(
        re.search(r" 2\.000 +\.\. 11\.000 ms  target, CPU 3 +thread hog-x7 \(4242\)", line) for line in lines
    )
    assert (
        "  not known: threads and interrupts of the producer: kernel events were not recorded there" in lines
    )


def test_ring_that_does_not_reach_back_says_so(tmp_path: Path) -> None:
    folder = _replay(tmp_path)
    _answer(folder)
    _record(folder, _found(tmp_path)[1].due_tai_ns, begin_ms=5)
    _, excerpt = _found(tmp_path)
    assert not [each for each in excerpt.moments if "thread" in each.what]
    assert any("the target's rings do not reach back so far" in each for each in excerpt.unwatched)


def test_clocks_that_are_not_known_against_each_other_tell_nothing(tmp_path: Path) -> None:
    """As of a tool that does not say it."""
    folder = _replay(tmp_path)
    _record(folder, _found(tmp_path)[1].due_tai_ns)
    replay, excerpt = _found(tmp_path)
    assert any(KERNEL_RING in each for each in replay.problems)
    assert any("kernel events were not recorded" in each for each in excerpt.unwatched)


def test_ring_that_is_damaged_is_a_problem_and_no_end(tmp_path: Path) -> None:
    folder = _replay(tmp_path)
    _answer(folder)
    (folder / KERNEL_RING).write_bytes(b"\x1f\x8bnothing")
    replay, excerpt = _found(tmp_path)
    assert any(KERNEL_RING in each for each in replay.problems)
    assert excerpt.moments
