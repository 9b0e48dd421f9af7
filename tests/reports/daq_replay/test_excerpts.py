# SPDX-License-Identifier: Apache-2.0
"""What happened around late messages: their own stamps, who took the processors, and what nobody watched."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from reports.__main__ import main
from reports.daq_replay.emulation import TARGET_WITNESS
from reports.daq_replay.evidence import load_replay
from reports.daq_replay.excerpt_plots import figure_excerpt
from reports.daq_replay.excerpts import EXCERPTS_MAX, Excerpt, excerpts_of_run, narrated
from reports.page.render import write_page
from tests.reports.sample_run import Disturbance, make_run, write_evidence

MS = 1_000_000
LATE = Disturbance(path_delay_ns={33: 15 * MS, 10: 120 * MS})


def _replay(run: Path, disturbance: Disturbance, name: str = "attempt-1") -> Path:
    folder = run / "evidence" / "daq_replay" / "linux-rt" / name
    folder.mkdir(parents=True)
    write_evidence(folder, disturbance, seed=3)
    return folder


def _worst(run: Path) -> dict[int, Excerpt]:
    return {each.message.stream: each for replay in excerpts_of_run(run) for each in replay.worst}


def test_the_worst_message_of_each_stream_has_an_excerpt_and_all_are_counted(tmp_path: Path) -> None:
    folder = _replay(tmp_path, LATE)
    [found] = excerpts_of_run(tmp_path)
    streams = {each.id: each for each in load_replay(folder).replay().recv.streams}
    assert found.late == {number: each.misses for number, each in streams.items() if each.misses}
    assert {10, 33} == set(found.late or ()) == set(_worst(tmp_path))
    for number, excerpt in _worst(tmp_path).items():
        assert excerpt.message.received_ns == streams[number].received_minus_scheduled.max_ns
        assert (excerpt.u_ns or 0) > 84_000
        assert excerpt.place == "daq_replay/linux-rt/attempt-1"


def test_the_stamps_of_a_message_tell_its_way_in_order(tmp_path: Path) -> None:
    _replay(tmp_path, LATE)
    excerpt = _worst(tmp_path)[33]
    lines = narrated(excerpt)
    assert re.match(r"stream 33, message no\. \d+ \(daq_replay/linux-rt/attempt-1\): 1\d\.\d+ ms, ", lines[0])
    assert "over its budget of 10 ms; U " in lines[0]
    due, sent, limit, read = (
        next(number for number, line in enumerate(lines) if said in line)
        for said in ("the message is due", "it is sent", "it should be there by now", "its last byte is read")
    )
    assert due < sent < limit < read
    assert [each.at_ns for each in excerpt.moments] == sorted(each.at_ns for each in excerpt.moments)
    assert any(line.startswith("  most of it: of 1") for line in lines)


def test_what_nobody_watched_is_said(tmp_path: Path) -> None:
    folder = _replay(tmp_path, LATE)
    of_kernel, of_target = (line for line in narrated(_worst(tmp_path)[33]) if "not known" in line)
    assert of_kernel == "  not known: threads and interrupts of both ends: kernel events were not recorded"
    assert "no witness ran there" in of_target
    (folder / "witness.ndjson").unlink()
    assert any("its witness" in line for line in narrated(_worst(tmp_path)[33]))


def test_the_machines_pauses_stand_where_they_were(tmp_path: Path) -> None:
    """Each message was held for 8 ms by a machine that was away, and for 7 ms and more by the path."""
    _replay(tmp_path, Disturbance(path_delay_ns={33: 15 * MS}, stalled=True))
    excerpt = _worst(tmp_path)[33]
    away = [each for each in excerpt.moments if each.where.startswith("machine")]
    assert any(each.at_ns >= 0 and (each.until_ns or 0) <= excerpt.message.received_ns for each in away)
    assert {each.what for each in away} == {"was away for 8 ms"}


def test_the_target_s_own_witness_is_heard(tmp_path: Path) -> None:
    folder = _replay(tmp_path, LATE)
    excerpt = _worst(tmp_path)[33]
    answer = json.loads((folder / "witness.ndjson").read_text().splitlines()[-1])
    begin = excerpt.due_tai_ns + 2 * MS
    answer["windows"] = [[begin, begin + 4 * MS, 1], [begin - 900 * MS, begin - 800 * MS, 0]]
    (folder / TARGET_WITNESS).write_text(json.dumps(answer) + "\n")
    lines = narrated(_worst(tmp_path)[33])
    [line] = [line for line in lines if "most urgent thread" in line]
    assert re.fullmatch(
        r" +2\.000 +\.\. 6\.000 ms +target, CPU 1 +its most urgent thread did not run for 4 ms", line
    )
    assert not any("no witness ran there" in line for line in lines)


def test_other_messages_that_were_held_are_counted_by_producer(tmp_path: Path) -> None:
    _replay(tmp_path, Disturbance(outage_ns=(20_000 * MS, 20_200 * MS)))
    [found] = excerpts_of_run(tmp_path)
    said = [each.what for excerpt in found.worst for each in excerpt.moments if "other message" in each.what]
    assert len(said) == len(found.worst) > 5
    assert all(
        re.search(r"^\d+ other messages read, late or nearly so \(producer \d+: \d+", what) for what in said
    )


def test_of_all_replays_the_worst_are_shown_and_checks_of_the_bench_are_none(tmp_path: Path) -> None:
    outage = Disturbance(outage_ns=(20_000 * MS, 20_200 * MS))
    first = _replay(tmp_path, outage)
    _replay(tmp_path, LATE, "attempt-2")
    write_evidence(_folder(first / "known_delay"), outage, seed=3)
    found = excerpts_of_run(tmp_path)
    assert [each.place.rpartition("/")[2] for each in found] == ["attempt-1", "attempt-2"]
    shown = [each.over_share for replay in found for each in replay.worst]
    assert len(shown) == EXCERPTS_MAX < sum(len(replay.late or ()) for replay in found)
    assert min(shown) > 2 > excerpts_of_run(tmp_path, 10)[1].worst[0].over_share
    one = [each for replay in excerpts_of_run(tmp_path, 10) for each in replay.worst]
    assert len(one) > 2
    assert {each.message.stream for each in one} == {10}


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def test_a_stream_whose_clock_stepped_has_no_excerpt_and_a_reason(tmp_path: Path) -> None:
    _replay(tmp_path, Disturbance(path_delay_ns={33: 15 * MS}, clock_step_ns=40 * MS))
    [found] = excerpts_of_run(tmp_path)
    assert found.worst == ()
    assert any(line.startswith("streams 33: no late message is in misses.ndjson") for line in found.problems)


def test_the_command_counts_and_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path)
    assert main(["why", str(run.path)]) == 0
    assert capsys.readouterr().out == "daq_replay/attempt-1: 0 messages over the budget\n"
    folder = _replay(run.path, LATE, "attempt-9")
    assert main(["why", str(run.path)]) == 0
    said = capsys.readouterr().out
    counted = r"^daq_replay/linux-rt/attempt-9: \d+ messages over the budget of 2 streams; 2 shown$"
    assert re.search(counted, said, re.MULTILINE)
    (folder / "recv.ndjson").write_text("{}\n")
    assert main(["why", str(run.path), "--stream", "33"]) == 0
    said = capsys.readouterr().out
    assert "attempt-9: how many messages were over the budget is not known\n  not known: recv.ndjson" in said
    assert main(["why", str(run.path), "--stream", "999"]) == 2
    assert "--stream 999: no replay of this run has it; there are 10, 11, 12, " in capsys.readouterr().err


def test_nobody_may_want_to_read_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", None)
    assert main(["why", str(make_run(tmp_path).path)]) == 0


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", str(tmp_path)]) == 2
    assert "no run folder: it has no run.json" in capsys.readouterr().err


def test_the_picture_has_a_lane_for_all_that_was_watched(tmp_path: Path) -> None:
    _replay(tmp_path, Disturbance(path_delay_ns={33: 15 * MS}, stalled=True))
    excerpt = _worst(tmp_path)[33]
    drawn = figure_excerpt("excerpt0", excerpt)
    assert drawn == figure_excerpt("excerpt0", excerpt)
    lanes = {each.where for each in excerpt.moments} - {"budget"}
    assert {"producer 3", "target"} < lanes
    assert all(f">{lane}<" in drawn for lane in lanes)
    assert f"What happened around message {excerpt.message.sequence} of stream 33" in drawn
    assert len(drawn) < 20_000


def test_the_page_shows_pictures_and_words_where_messages_were_late(tmp_path: Path) -> None:
    late = write_page(make_run(tmp_path / "late", LATE, seed=3).path).read_text()
    clean = write_page(make_run(tmp_path / "clean").path).read_text()
    assert late.count("What happened around message ") == 2
    assert "The same in words" in late
    assert "What happened around" not in clean
