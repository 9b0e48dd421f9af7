# SPDX-License-Identifier: Apache-2.0
"""Who had the time of a ring's late messages: the target's kernel, its clock 4 s ahead and 25 ppm fast."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reports.clock_sync.tai_utc import NodeTaiUtc, write_tai_utc
from reports.control_loops import ring_activities
from reports.control_loops import ring_suspects as suspects
from reports.control_loops.pace import due_ns
from reports.control_loops.ring import Ring, load_ring
from reports.control_loops.ring_activities import KERNEL_RING, MACHINE, WITNESS
from reports.control_loops.ring_evidence import FOLDER, Emulator, KernelNode, RecordedKernel, write_ring
from reports.errors import RecordError
from reports.run.folder import RunFolder
from reports.timeline.kernel_recording import Recording
from tests.reports.causes.test_emulator_waits import (
    ASLEEP,
    EMULATOR,
    IDLE,
    OTHER,
    PREEMPTED,
    RUNNABLE,
    Switch,
)
from tests.reports.causes.test_emulator_waits import ring as emulating
from tests.reports.causes.test_kernel_activity import SWITCH, Row, ring
from tests.reports.control_loops.ring_sample import (
    BEGIN_NS,
    INTERVAL_NS,
    MACHINES,
    NODES,
    TARGET,
    hop_ns,
    write_sample_ring,
)
from tests.reports.pages import page_with, words_of

COUNT, EACH, HELD_NS = 400, 20, 20_000_000
LAST = len(NODES) - 1


def held(number: int) -> bool:
    return number % EACH == 7


def comes_back_ns(number: int) -> int:
    """Return when a message would have come back, had nobody held it."""
    at = BEGIN_NS + number * INTERVAL_NS + sum(hop_ns(place, number) for place in range(1, LAST + 1))
    return at + (LAST - 1) * 700


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return evidence in which each 20th message waits 20 ms at the target, which has another thread then."""

    def hops(place: int, number: int) -> int:
        return hop_ns(place, number) + (HELD_NS if place == LAST and held(number) else 0)

    write_sample_ring(tmp_path, count=COUNT, hops=hops)
    write_tai_utc(tmp_path, [NodeTaiUtc(TARGET, 37)])
    rows: list[Row] = [(MACHINES[TARGET].clock_ns(BEGIN_NS), SWITCH, b"swapper/0")]
    for number in filter(held, range(COUNT)):
        begin = comes_back_ns(number) - 1000
        rows.append((MACHINES[TARGET].clock_ns(begin), SWITCH, b"nobody-knows"))
        rows.append((MACHINES[TARGET].clock_ns(begin + HELD_NS + 1000), SWITCH, b"swapper/0"))
    (tmp_path / KERNEL_RING).touch()

    def recorded(path: Path) -> Recording:
        assert path.name == KERNEL_RING
        return Recording({0: ring(rows)}, {})

    monkeypatch.setattr(ring_activities, "load_recording", recorded)
    return tmp_path


@pytest.fixture
def measured(folder: Path) -> Ring:
    return load_ring(folder)


def test_the_thread_that_had_the_time_is_named(folder: Path, measured: Ring) -> None:
    found = suspects.ring_suspects(measured, folder)
    assert found
    [guilty] = found.named
    assert (guilty.name, guilty.node) == ("thread nobody-knows", TARGET)
    assert found.groups == COUNT // EACH - 1  # the first ten messages do not count
    assert guilty.share == pytest.approx(1, abs=0.02)


def test_a_machine_that_was_held_up_takes_the_time_from_its_threads(folder: Path, measured: Ring) -> None:
    begun = [comes_back_ns(number) - 500_000 for number in filter(held, range(COUNT))]
    result = {
        "type": "result",
        "cpus": [],
        "stalled_fraction": 0.0,
        "windows": [[begin, begin + HELD_NS // 2, 0] for begin in begun],
        "windows_dropped": 0,
    }
    (folder / WITNESS).write_text(json.dumps(result) + "\n")
    found = suspects.ring_suspects(measured, folder)
    assert found
    share = {each.name: each.share for each in found.named}
    assert share["thread nobody-knows"] == pytest.approx(0.525, abs=0.02)
    assert share[MACHINE] == pytest.approx(0.475, abs=0.02)


def test_without_a_recording_it_is_said_what_would_tell(folder: Path, measured: Ring) -> None:
    (folder / KERNEL_RING).unlink()
    with pytest.raises(
        RecordError, match=f"the kernel of {TARGET} was not recorded: {KERNEL_RING} would tell"
    ):
        suspects.ring_suspects(measured, folder)


def test_a_kernel_whose_tai_is_not_known_tells_nothing(folder: Path, measured: Ring) -> None:
    write_tai_utc(folder, [NodeTaiUtc("p01", 37)])
    with pytest.raises(RecordError, match="takes for TAI - UTC is not known"):
        suspects.ring_suspects(measured, folder)


def test_a_ring_without_a_late_message_has_no_suspects(tmp_path: Path) -> None:
    write_sample_ring(tmp_path)
    assert suspects.ring_suspects(load_ring(tmp_path), tmp_path) is None


def test_late_is_what_is_far_above_the_middle() -> None:
    took = np.full(100, 2_000_000, np.int64)
    took[::2] += 10_000
    took[[3, 50]] += 1_500_000
    late = suspects.late_messages(took)
    assert np.flatnonzero(late.is_late).tolist() == [3, 50]
    took[50] -= 600_000
    assert np.flatnonzero(suspects.late_messages(took).is_late).tolist() == [3]


def test_page_says_who_had_the_time(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    run = RunFolder.create(
        tmp_path_factory.mktemp("results"), "virtual", "ci", simulated=True, commit="0" * 40
    )
    shutil.copytree(folder, run.evidence_folder(FOLDER, TARGET), dirs_exist_ok=True)
    run.update(target={TARGET: {"hostname": TARGET}})
    run.close()
    page = page_with(run.path, "control-loops")
    words = words_of(page)
    said = f"100 % of what late messages take longer, in {COUNT // EACH - 1} groups, had thread nobody-knows"
    assert said in words
    assert "Who was active on the target while late messages were there" in words
    [bar, *others] = re.findall(r'<svg class="amount".*?</svg>', page)
    assert re.search(r'aria-label="100 %, from \d+ to 100 %"', bar)
    assert '<rect x="0" y="2" width="99.9" height="8" fill="var(--type1)"/>' in bar
    assert all('fill="var(--type1)"' not in other for other in others)


def test_a_source_that_is_held_up_writes_late(folder: Path, measured: Ring) -> None:
    """Three messages 30, 25 and 20 ms late, by a clock that is 40 ppm off: due is when others say."""
    sent = measured.whole.sent
    number = measured.whole.number
    drifts = (number * INTERVAL_NS * 40e-6).astype(np.int64)
    held_up = np.zeros_like(number)
    held_up[100:103] = 30_000_000, 25_000_000, 20_000_000
    moved = replace(sent, tai_ns=sent.tai_ns + drifts + held_up)
    nobody_asked = tuple(replace(each, exchanges=None) for each in measured.facts.ends)
    facts = replace(measured.facts, ends=nobody_asked)
    ring = replace(measured, facts=facts, whole=replace(measured.whole, sent=moved))
    off = moved.tai_ns - due_ns(ring, folder)
    assert np.abs(off - held_up).max() <= 1000
    assert off.min() >= 0


def test_what_its_machine_ran_instead_takes_the_time_from_the_targets_threads(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the time the target's processor was not run: its emulator waited for another thread."""
    own = RecordedKernel(KERNEL_RING, (KernelNode(TARGET),))
    machine = RecordedKernel(
        "kernel-ring-p01.gz",
        (KernelNode("p01", (0,)), KernelNode("p02", (0,))),
        (Emulator(TARGET, "vcpu0", 100),),
    )
    write_ring(folder, replace(load_ring(folder).facts, kernels=(own, machine)))
    write_tai_utc(folder, [NodeTaiUtc(TARGET, 37), NodeTaiUtc("p01", 37)])
    (folder / machine.file).touch()
    recorded = ring_activities.load_recording(folder / KERNEL_RING)
    switches: list[Switch] = [(0, IDLE, RUNNABLE, EMULATOR)]
    for number in filter(held, range(COUNT)):
        begin = comes_back_ns(number) - 500_000
        switches.append((begin, EMULATOR, PREEMPTED, OTHER))
        switches.append((begin + HELD_NS // 2, OTHER, ASLEEP, EMULATOR))
    of_machine = Recording({1: emulating(switches, cpu=1)}, {})

    def loaded(path: Path) -> Recording:
        return recorded if path.name == KERNEL_RING else of_machine

    monkeypatch.setattr(ring_activities, "load_recording", loaded)
    found = suspects.ring_suspects(load_ring(folder), folder)
    assert found
    share = {(each.name, each.node): each.share for each in found.named}
    assert share == {
        ("thread nobody-knows", TARGET): pytest.approx(0.525, abs=0.02),
        ("thread backup, of the machine below", TARGET): pytest.approx(0.475, abs=0.02),
    }
    without = suspects.ring_suspects(load_ring(folder), folder, ("thread ",))
    assert without
    assert not without.named
