# SPDX-License-Identifier: Apache-2.0
"""Must fail: a path that is delayed or loses packets, held against a capture at the target's link.

All of it holds for each target that can take the whole pattern. A second target is asked for what tells most;
for all of it, on targets of one's choice:

    BENCHWRIGHT_IMPAIRED_TARGETS="linux-rt windows" pytest tests/simulation/test_impairment.py
"""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

from hw.path_settings import PathSettings, RandomLoss
from hw.paths import producer_path
from hw.protocols import Router
from resources.daq_replay.replay import Replay
from resources.tools.capture import read_packets
from tests.simulation.trial import TARGET, Lab, Trial, when_quiet

pytestmark = [pytest.mark.simulated, pytest.mark.timed]

SSH_PORT = 22
BRINK = 0.8
"""From this share of a budget on, what the target itself needs for a message of 640 KB decides."""
CHOSEN = os.environ.get("BENCHWRIGHT_IMPAIRED_TARGETS", "").split()
ONE_TARGET, TWO_TARGETS = (
    pytest.mark.parametrize("lab", CHOSEN or targets, indirect=True)
    for targets in ([TARGET], [TARGET, "windows"])
)


@pytest.fixture(scope="module")
def router(lab: Lab) -> Generator[Router]:
    """Give the router; it stays powered between the tests, and goes out of the way at the end."""
    node = lab.bench.router()
    yield node
    node.clear()


def disturb(lab: Lab, router: Router, producers: list[int], settings: PathSettings) -> None:
    """Treat what these producers send to the target."""
    router.configure([producer_path(lab.bench.spec, each, lab.target.node) for each in producers], settings)


def uncertainty_ns(trial: Trial, stream: int) -> float:
    """Return U of a stream."""
    return trial.records[stream].uncertainty.expanded


def limit_ns(trial: Trial, stream: int) -> float:
    """Return the budget of a stream."""
    upper = trial.records[stream].limit.upper
    assert upper is not None
    return upper


def exceeded(trial: Trial) -> set[int]:
    """Return the streams with a message that was whole on the link too late, or never."""
    return {
        stream
        for stream, seen in trial.seen.items()
        if seen.missing or seen.max_ns > limit_ns(trial, stream) + uncertainty_ns(trial, stream)
    }


def borderline(trial: Trial) -> set[int]:
    """Return the streams whose largest latency on the link lies within U of the budget."""
    return {
        stream
        for stream, seen in trial.seen.items()
        if seen.latency_ns and abs(seen.max_ns - limit_ns(trial, stream)) <= uncertainty_ns(trial, stream)
    }


def on_the_brink(trial: Trial) -> set[int]:
    """Return the streams that reach the link in time, but so late that the target's own work decides."""
    return {
        stream
        for stream, seen in trial.seen.items()
        if seen.latency_ns and BRINK * limit_ns(trial, stream) < seen.max_ns <= limit_ns(trial, stream)
    }


def assert_no_wrong_pass(trial: Trial) -> None:
    """A stream that the capture shows too late must not pass, however disturbed the bench is."""
    wrong = trial.streams("pass") & (exceeded(trial) | borderline(trial))
    assert not wrong, trial.told(wrong)
    for stream in trial.streams("pass"):
        # What was whole on the link cannot have been received earlier.
        record, seen = trial.records[stream], trial.seen[stream]
        assert record.value is not None
        assert record.value >= seen.max_ns - record.uncertainty.expanded, trial.told({stream})


@ONE_TARGET
def test_undisturbed_bench_passes_in_silence(lab: Lab) -> None:
    """No stream is late for another reason than the machine's, and nothing travels over SSH to the target."""
    control_link = f"c-{lab.target.node}"

    def both_links(replay: Replay) -> None:
        replay.capture_interfaces = (*replay.capture_interfaces, control_link)

    def all_pass(trial: Trial) -> None:
        others = trial.streams("fail", "inconclusive", "unset", "error") - trial.explained
        assert not others, trial.told(others)
        assert len(trial.streams("pass")) > len(trial.explained), trial.told(trial.explained)

    # This replay is too short to meet a keepalive; a qualification's is not.
    server = lab.bench.node(lab.target.node).run(["/usr/sbin/sshd", "-T"]).stdout.splitlines()
    assert {"clientaliveinterval 0", "tcpkeepalive no"} <= set(server)
    found = when_quiet(lambda: lab.trial(both_links), assert_no_wrong_pass, all_pass)
    recv = found.answers.recv
    line = found.answers.lines_before[lab.target.node]
    begin_ns, end_ns = (line.reference_ns(recv[key]) for key in ("start_tai_ns", "end_tai_ns"))
    before, silent = 0, 0
    exchanges = 0
    for packet in read_packets(found.answers.folder / f"{control_link}.pcap"):
        tai_ns = packet.time_ns + recv["tai_utc_s"] * 1_000_000_000
        counting = begin_ns <= tai_ns <= end_ns
        if SSH_PORT in (packet.destination_port, packet.key[3]):
            before += not counting
            silent += counting
        else:
            exchanges += counting
    assert before > 0, "the capture cannot see SSH at all"
    assert exchanges > 0, "the two-way exchanges were not captured"
    assert silent == 0


@TWO_TARGETS
def test_exactly_the_streams_fail_that_a_delay_of_15_ms_pushes_over_budget(lab: Lab, router: Router) -> None:
    """Two producers are delayed: consumer and a capture that knows nothing of it name the same streams."""
    producers, needed = [2, 3], {23, 33}

    def exactly(trial: Trial) -> None:
        late, failed = exceeded(trial), trial.streams("fail")
        assert needed <= late & failed, trial.told(needed)
        differ = (failed ^ late) - borderline(trial) - on_the_brink(trial) - trial.explained
        assert not differ, trial.told(differ)
        assert {stream // 10 for stream in late - trial.explained} == {*producers}, trial.told(late)

    disturb(lab, router, producers, PathSettings(delay_us=15_000))
    when_quiet(lab.trial, assert_no_wrong_pass, exactly)


@ONE_TARGET
def test_delay_of_a_whole_budget_never_passes(lab: Lab, router: Router) -> None:
    """+9.9 ms: what little is left of 10 ms does not hold; the streams with larger budgets still pass."""
    producer, budget_ns = 3, 10_000_000

    def never_passes(trial: Trial) -> None:
        assert_no_wrong_pass(trial)
        tight = {s.id for s in lab.pattern.streams if s.producer == producer and s.budget_ns == budget_ns}
        assert tight
        assert tight <= trial.streams("fail", "inconclusive"), trial.told(tight)
        for stream in tight:
            value = trial.records[stream].value
            assert value is not None
            assert value >= 9_900_000, trial.told(tight)

    def others_pass(trial: Trial) -> None:
        others = {s.id for s in lab.pattern.streams if s.producer != producer or s.budget_ns != budget_ns}
        in_time = trial.streams("pass") | trial.explained
        assert others <= in_time, trial.told(others - in_time)

    disturb(lab, router, [producer], PathSettings(delay_us=9_900))
    when_quiet(lab.trial, never_passes, others_pass)


@ONE_TARGET
def test_loss_fails_the_datagrams(lab: Lab, router: Router) -> None:
    """2 % loss: each UDP stream that lost a message fails, by as many messages as the link did not carry."""
    # Datagrams of 3, 3 and 2 fragments: 210 of them lose nothing once in 10^5 runs.
    producers = [4, 6, 7]

    def lost_is_failed(trial: Trial) -> None:
        for stream in lab.pattern.streams:
            if stream.transport != "udp":
                continue
            record, seen = trial.records[stream.id], trial.seen[stream.id]
            assert record.lost >= seen.missing, trial.told({stream.id})
            if seen.missing:
                assert record.outcome in ("fail", "inconclusive"), trial.told({stream.id})

    def exactly(trial: Trial) -> None:
        lossy = {stream for stream, seen in trial.seen.items() if seen.missing}
        assert {stream // 10 for stream in lossy} <= set(producers), trial.told(lossy)
        datagrams = {s.id for s in lab.pattern.streams if s.producer in producers and s.transport == "udp"}
        lossy &= datagrams
        assert lossy, trial.told(datagrams)
        assert lossy == datagrams & trial.streams("fail"), trial.told(datagrams)
        others = {s.id for s in lab.pattern.streams if s.producer not in producers}
        in_time = trial.streams("pass") | trial.explained
        assert others <= in_time, trial.told(others - in_time)

    disturb(lab, router, producers, PathSettings(loss=RandomLoss(2.0)))
    when_quiet(lab.trial, lost_is_failed, exactly)
