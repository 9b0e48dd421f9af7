# SPDX-License-Identifier: Apache-2.0
"""The section on single messages: stacks beside each other, and what cannot be read is said."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from reports.realtime_ethernet.evidence import FOLDER, MESSAGES, write_messages
from reports.realtime_ethernet.section import MessageSection, gather_messages
from reports.run.folder import RunFolder
from reports.section import TargetData
from reports.units import NO_VALUE
from tests.reports.pages import page_with, words_of
from tests.reports.realtime_ethernet.sample import TARGET, write_sample_messages, write_traced_sample


def gathered(run: Path) -> MessageSection:
    shown = gather_messages(TargetData(run, target=TARGET))
    assert shown is not None
    return shown


def folders(run: Path) -> tuple[Path, Path]:
    whole = run / "evidence" / FOLDER / TARGET
    return whole / "arms", whole / "kernel"


def test_stacks_stand_beside_the_kernel(tmp_path: Path) -> None:
    other, kernel = folders(tmp_path)
    write_sample_messages(kernel)
    write_messages(other, dataclasses.replace(write_sample_messages(other, rise=1.0), stack="rtdip"))
    shown = gathered(tmp_path)
    assert [each.messages.stack for each in shown.stacks] == ["kernel", "rtdip"]
    assert [row.against_percent for row in shown.stacks[0].latencies] == [None, None]
    assert [row.against_percent for row in shown.stacks[1].latencies] == [0, 0]
    assert shown.stacks[0].rise["bulk_rise", "median"].value == pytest.approx(51, abs=1)
    assert shown.stacks[1].rise["bulk_rise", "median"].value == pytest.approx(1, abs=1)
    assert shown.stacks[0].share == pytest.approx(0.95, abs=0.01)
    assert (shown.stacks[0].stolen_share, shown.stacks[0].disturbed) == (0.01, 0)
    assert not shown.problems


def test_one_stack_lies_in_the_folder_of_the_target(tmp_path: Path) -> None:
    write_sample_messages(tmp_path / "evidence" / FOLDER / TARGET)
    assert [each.messages.stack for each in gathered(tmp_path).stacks] == ["kernel"]


def test_page_shows_every_table(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "results", "virtual", "ci", simulated=True, commit="0" * 40)
    write_traced_sample(run.evidence_folder(FOLDER, TARGET))
    run.update(target={TARGET: {"hostname": TARGET}})
    run.close()
    words = words_of(page_with(run.path, "single-messages")).replace(NO_VALUE, "-")
    for row in (
        "kernel 64 20.89 µs 630 ns 21.72 µs 1.16 µs - 1 400 0",
        "kernel 20.89 µs 31.53 µs 50.9 % 1.5 % 50.6 % 1.7 % 10.2 % 0.33 % 10.1 % 0.39 % 95.0 % 1 400",
        "bulk receiver 200 µs 249 µs",
        "kernel 64 12.50 MB/s 0 bytes/s - 85 442 0",
        "kernel 1400 12.50 MB/s 0 bytes/s - 3 906 0",
    ):
        assert row in words


def test_nothing_measured_is_no_section(tmp_path: Path) -> None:
    assert gather_messages(TargetData(tmp_path, target=TARGET)) is None


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    other, kernel = folders(tmp_path)
    write_sample_messages(kernel)
    (kernel / "000-latency-4.ndjson").write_text("")
    write_sample_messages(other)
    (other / MESSAGES).write_text("{}")
    shown = gathered(tmp_path)
    assert not shown.stacks
    assert len(shown.problems) == 2
    assert "000-latency-4.ndjson" in shown.problems[1]
