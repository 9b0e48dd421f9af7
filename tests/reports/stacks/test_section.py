# SPDX-License-Identifier: Apache-2.0
"""The section: one picture, every pair with its verdict in words, and why there is no comparison."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from reports.run.folder import RunFolder
from reports.section import TargetData
from reports.stacks.evidence import FOLDER, KeptTurn, load_stack_turns, write_messages, write_stack_turns
from reports.stacks.per_stack import cpu_of, of_types
from reports.stacks.section import StackSection, gather_stacks
from tests.reports.pages import page_with, words_of
from tests.reports.stacks.sample import TARGET, write_sample_turns


def gathered(run: Path) -> StackSection | None:
    return gather_stacks(TargetData(run, target=TARGET))


def folder_of(run: Path) -> Path:
    folder = run / "evidence" / FOLDER / TARGET
    folder.mkdir(parents=True)
    return folder


def made_run(tmp_path: Path) -> tuple[RunFolder, Path]:
    run = RunFolder.create(tmp_path / "results", "native", "ci", simulated=True, commit="0" * 40)
    folder = run.evidence_folder(FOLDER, TARGET)
    write_sample_turns(folder)
    run.update(target={TARGET: {"hostname": TARGET}})
    return run, folder


def test_the_page_answers_the_question(tmp_path: Path) -> None:
    run, _folder = made_run(tmp_path)
    run.close()
    page = page_with(run.path, "stacks")
    words = words_of(page)
    assert page.count("Network stacks beside each other</title>") == 1
    for said in (
        "user is faster by 28.7 µs ± 4.71 µs",
        "user is faster, by 29.7 µs, at most 60.2 µs",
        "no difference shown, none above 4.71 µs would have been missed",
        "inconclusive: in 2 of 20 turns it is a lost message",
        "All 12 comparisons hold together at 95 %.",
        "idle user root, AF_XDP, both ends target",
        "idle kernel nothing target",
        "user, idle: within budget 99.75 %, lost 0.252 %, needs root, AF_XDP, both ends",
        "kernel, idle: within budget all, lost 0 %, needs nothing",
    ):
        assert said in (page if ": within" in said else words), said


def test_without_evidence_there_is_no_section(tmp_path: Path) -> None:
    assert gathered(tmp_path) is None


def test_damaged_evidence_is_said(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    write_sample_turns(folder)
    (folder / "turn-0000.csv").unlink()
    shown = gathered(tmp_path)
    assert shown is not None
    assert [each.split(":")[0] for each in shown.evidence_problems] == ["turn-0000.csv"]
    assert not list(shown.print_figures)


def test_streams_of_one_stack_alone_are_listed(tmp_path: Path) -> None:
    run, folder = made_run(tmp_path)
    kept, turns = load_stack_turns(folder)
    without: list[KeptTurn] = []
    for turn, told in zip(turns, kept.turns, strict=True):
        lost = dict(told.lost)
        if turn.stack == "user":
            del lost["type 1"]
            write_messages(folder, told.file, {"type 0": turn.messages["type 0"]})
        without.append(dataclasses.replace(told, lost=lost))
    write_stack_turns(folder, dataclasses.replace(kept, turns=tuple(without)))
    run.close()
    words = words_of(page_with(run.path, "stacks"))
    assert (
        "Not compared: type 1 under idle , which of kernel and user kernel alone carried."
        in words.replace("idle,", "idle ,")
    )


def test_values_of_each_stack_leave_out_what_the_machine_took(tmp_path: Path) -> None:
    write_sample_turns(tmp_path)
    kept, turns = load_stack_turns(tmp_path)
    found = of_types(turns, kept.names, kept.budgets_ns)
    assert len(found) == 2 * 2 * 2
    for each in found:
        own = [
            t.messages[each.stream_type]
            for t in turns
            if (t.stack, t.condition) == (each.stack, each.condition)
        ]
        assert each.messages + each.taken == sum(len(m.latency_ns) + m.lost for m in own) == 1200
        assert each.taken > 0
        assert each.over == each.lost


def test_cpu_a_message_is_of_all_that_were_sent(tmp_path: Path) -> None:
    write_sample_turns(tmp_path)
    kept, turns = load_stack_turns(tmp_path)
    idle = [turn for turn in turns if (turn.stack, turn.condition) == ("user", "idle")]
    found = next(
        each for each in cpu_of(turns, kept.names) if (each.stack, each.condition) == ("user", "idle")
    )
    assert found.others_ns == 7_000_000 * 10 / 2400
    assert found.target_ns == sum(turn.target_cpu_ns or 0 for turn in idle) / 2400
    unknown = [dataclasses.replace(turns[0], target_cpu_ns=None), *turns[1:]]
    first = next(
        each
        for each in cpu_of(unknown, kept.names)
        if (each.stack, each.condition) == (turns[0].stack, turns[0].condition)
    )
    assert first.target_ns is None
    assert first.others_ns is not None
