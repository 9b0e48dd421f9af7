# SPDX-License-Identifier: Apache-2.0
"""Logs of clock daemons: real ones (tests/reports/golden), signs against known truths, damaged lines.

The logs in golden/ were written by ptp4l 3.1.1 and chronyd 4.3 between two network namespaces, with nobody
allowed to set the clock. chronyd's server ran 20 ppm slow and stood 50 us behind at the first answer, so the
client was 50 us ahead and 20 ppm fast (plain NTP queries beside it said the same). ptp4l's client took its
receive stamps 60 us too early (ingressLatency), so it saw itself 30 us behind. The lines of phc2sys follow
its format strings (phc2sys.c, 3.1.1): no PHC was at hand.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.clock_sync.chrony_logs import (
    read_chrony_measurements,
    read_chrony_statistics,
    read_chrony_tracking,
)
from reports.clock_sync.client_logs import read_ntp_user, read_stripchart, read_time_service
from reports.clock_sync.linuxptp_logs import read_phc2sys, read_ptp4l, read_ts2phc
from reports.clock_sync.logs import ClockLog, ServoSeries
from reports.units import NS_PER_MS, NS_PER_S

ntpstats_parsers: Any = import_module("ntpstats.parsers")  # its types are incomplete

GOLDEN = Path(__file__).resolve().parent / "golden"
TAI_UTC_S = 37
READERS: dict[str, Callable[[str], ClockLog]] = {
    "ptp4l.log": read_ptp4l,
    "ptp4l-rms.log": read_ptp4l,
    "chrony-measurements.log": lambda text: read_chrony_measurements(text, TAI_UTC_S),
    "chrony-statistics.log": lambda text: read_chrony_statistics(text, TAI_UTC_S),
    "chrony-tracking.log": lambda text: read_chrony_tracking(text, TAI_UTC_S),
}


def golden(name: str) -> str:
    return (GOLDEN / name).read_text()


def only(log: ClockLog) -> ServoSeries:
    assert len(log.series) == 1
    return log.series[0]


@pytest.mark.parametrize("name", READERS)
def test_no_line_of_a_real_log_is_damaged(name: str) -> None:
    found = READERS[name](golden(name))
    assert (found.damaged, found.damaged_lines) == (0, ())
    held = sum(len(one.time_ns) for one in found.series) + len(found.port_changes) + len(found.summaries)
    assert held + found.other == len(golden(name).splitlines())


def test_ptp4l_against_a_client_that_is_behind() -> None:
    log = read_ptp4l(golden("ptp4l.log"))
    servo = only(log)
    assert (servo.program, servo.source, servo.clock) == ("ptp4l", "master", "monotonic")
    assert np.all(np.abs(servo.offset_ns + 30_000) < 2000)
    assert servo.state[0] == "s0"
    assert servo.state[16:18] == ("s1", "s2")
    assert servo.freq_ppb[-1] < -3000  # a clock that is behind is taken for slow
    assert servo.path_delay_ns[0] == -27647
    assert servo.time_ns[0] == 26753 * NS_PER_S + 272 * NS_PER_MS
    assert servo.clock_series().tau0_ns == pytest.approx(NS_PER_S, rel=1e-3)
    last = log.port_changes[-1]
    assert (last.before, last.after, last.event) == ("SLAVE", "LISTENING", "ANNOUNCE_RECEIPT_TIMEOUT_EXPIRES")
    assert [change.after for change in log.port_changes[-3:]] == ["UNCALIBRATED", "SLAVE", "LISTENING"]


def test_summary_lines_have_no_sign_and_give_no_offsets() -> None:
    log = read_ptp4l(golden("ptp4l-rms.log"))
    assert log.series == ()
    assert log.summaries[0].max_abs_ns == 511


def test_chrony_measurements_of_a_client_that_is_ahead() -> None:
    """The file says -5.554e-05: negative there means ahead."""
    servo = only(READERS["chrony-measurements.log"](golden("chrony-measurements.log")))
    assert (servo.program, servo.source, servo.clock) == ("chrony-measurements", "10.77.0.1", "tai")
    assert servo.offset_ns[0] == 55_540
    assert servo.path_delay_ns[0] == 26_190 / 2
    assert servo.state[0] == "4B K K"
    assert servo.state[2] == "4I K K"
    assert servo.time_ns[0] == (1_795_284_062 + TAI_UTC_S) * NS_PER_S
    assert np.isnan(servo.freq_ppb).all()


def test_chrony_statistics_and_tracking_of_a_client_that_is_ahead_and_fast() -> None:
    statistics = only(READERS["chrony-statistics.log"](golden("chrony-statistics.log")))
    assert statistics.offset_ns[0] == 49_020
    assert statistics.freq_ppb[1] == pytest.approx(14_290)
    tracking = only(READERS["chrony-tracking.log"](golden("chrony-tracking.log")))
    assert tracking.offset_ns[0] == 45_620
    # Nobody sets the clock: its error grows by 20 us a second, and chronyd says so of what it cannot slew.
    grown_ns = np.diff(tracking.offset_ns[[0, -1]]) / (tracking.time_ns[-1] - tracking.time_ns[0]) * NS_PER_S
    assert grown_ns == pytest.approx(20_000, rel=0.05)
    assert tracking.freq_ppb[-1] == pytest.approx(20_000, abs=100)
    assert tracking.state[0] == "N"
    assert tracking.source == "10.77.0.1"  # not 0.0.0.0, the line before there was a source


@pytest.mark.parametrize("name", [name for name in READERS if name != "ptp4l-rms.log"])
def test_signs_and_values_agree_with_ntpstats(name: str) -> None:
    """The second library wants reference - local: ours, negated. It keeps one sample of a time."""
    servo = only(READERS[name](golden(name)))
    (theirs,) = ntpstats_parsers.load(str(GOLDEN / name))
    offsets = set((-servo.offset_ns).tolist())
    if name == "chrony-tracking.log":  # theirs leaves out what is still being slewed away
        rows = [line.split() for line in golden(name).splitlines() if line.startswith("2026")]
        offsets = {round(-float(row[6]) * NS_PER_S) for row in rows}
        still = {round((float(row[6]) - float(row[10])) * NS_PER_S) for row in rows}
        assert set(servo.offset_ns.tolist()) <= still
    found = [round(float(value) * NS_PER_S) for value in theirs.offset]
    assert len(found) > 20
    assert sum(value not in offsets for value in found) <= 1  # tracking: the line without a source


PHC2SYS = """\
phc2sys[100.250]: reconfiguring after port state change
phc2sys[101.250]: CLOCK_REALTIME phc offset      -412 s0 freq      +0 delay    512
phc2sys[102.250]: CLOCK_REALTIME phc offset       721 s2 freq   -1034 delay    498
phc2sys[103.250]: CLOCK_REALTIME phc offset        44 s2 freq   -1001
phc2sys[103.300]: /dev/ptp0 sys offset       -17 s2 freq      +3 delay   1203
phc2sys[104.250]: CLOCK_REALTIME rms   19 max   44 freq  -1010 +/-  12 delay   500 +/-   4
"""


def test_phc2sys_in_both_forms() -> None:
    log = read_phc2sys(PHC2SYS)
    system, card = log.series
    assert (system.source, card.source) == ("CLOCK_REALTIME phc", "/dev/ptp0 sys")
    assert system.offset_ns.tolist() == [-412, 721, 44]
    assert system.freq_ppb.tolist() == [0, -1034, -1001]
    assert system.path_delay_ns[:2].tolist() == [512, 498]
    assert math.isnan(system.path_delay_ns[2])
    assert card.offset_ns.tolist() == [-17]
    assert [one.max_abs_ns for one in log.summaries] == [44]
    assert (log.damaged, log.other) == (0, 1)


def test_lines_from_syslog_and_of_tagged_or_other_programs() -> None:
    text = (
        "Nov 21 18:05:53 box ptp4l[812]: [26753.272] [gm] master offset     -29912 s2 freq +5 path delay 77\n"
        "Nov 21 18:05:53 box phc2sys[813]: [26753.280] CLOCK_REALTIME phc offset  5 s2 freq  +5 delay  77\n"
        "ptp4l[5.001]: port 1 (eth0): LISTENING to SLAVE on MASTER_CLOCK_SELECTED\n"
    )
    log = read_ptp4l(text)
    assert only(log).source == "gm master"
    assert (only(log).time_ns[0], only(log).offset_ns[0]) == (26_753_272_000_000, -29912)
    assert (log.port_changes[0].port, log.other, log.foreign, log.damaged) == (1, 0, 1, 0)


@pytest.mark.parametrize("tag", ["lab7 ", "[lab7] ", "lab7.0.config ", ""])
def test_message_tag_stands_before_a_message_as_it_is(tag: str) -> None:
    """The tag is printed bare; brackets that some put around it are part of it."""
    lines = golden("ptp4l.log").replace("]: ", f"]: {tag}")
    log, plain = read_ptp4l(lines), read_ptp4l(golden("ptp4l.log"))
    assert only(log).source == " ".join([*tag.strip(" []").split(), "master"])
    assert only(log).offset_ns.tolist() == only(plain).offset_ns.tolist()
    assert (log.port_changes, log.damaged) == (plain.port_changes, 0)
    summaries = read_ptp4l(golden("ptp4l-rms.log").replace("]: ", f"]: {tag}")).summaries
    assert len(summaries) == len(read_ptp4l(golden("ptp4l-rms.log")).summaries)
    tagged = read_phc2sys(PHC2SYS.replace("]: ", f"]: {tag}"))
    assert [one.source.rpartition(" ")[2] for one in tagged.series] == ["phc", "sys"]
    assert (len(tagged.summaries), tagged.damaged) == (1, 0)


def test_lines_of_syslog_without_a_process_id_and_of_other_programs() -> None:
    text = (
        "Nov  1 18:05:53 box ptp4l: [26753.272] master offset     -29912 s2 freq      +5"
        " path delay       77\n"
        "2026-11-21T18:05:53.123+01:00 box ptp4l: [26754.272] rms  362 max  511 freq     +0 +/-   0\n"
        "Nov  1 18:05:54 box sshd[71]: Accepted publickey for root\n"
        "Nov  1 18:05:54 box kernel: igb 0000:01:00.0 eth0: Link is up\n"
        "ts2phc[26754.300]: /dev/ptp0 offset          3 s2 freq      +7\n"
    )
    log = read_ptp4l(text)
    assert only(log).offset_ns.tolist() == [-29912]
    assert (len(log.summaries), log.foreign, log.other, log.damaged) == (1, 3, 0, 0)
    assert log.left_out() == "lines left out: 3 of other programs; 1 summary lines, which have no sign"


def test_phc2sys_of_a_pulse_a_second() -> None:
    """A PPS has no delay (phc2sys.c, do_pps_loop)."""
    log = read_phc2sys("phc2sys[7.100]: CLOCK_REALTIME pps offset       -51 s2 freq    +612\n")
    assert (only(log).source, only(log).offset_ns.tolist()) == ("CLOCK_REALTIME pps", [-51])


@pytest.mark.parametrize("missing", [1, 3, 5])
def test_a_line_that_ends_within_its_last_number_is_damaged(missing: int) -> None:
    """-27647 that lost digits is a delay of -27: its column is too narrow."""
    lines = golden("ptp4l.log").splitlines()
    number = next(place for place, line in enumerate(lines) if "master offset" in line)
    lines[number] = lines[number][:-missing]
    log = read_ptp4l("\n".join(lines) + "\n")
    assert (log.damaged, log.damaged_lines) == (1, (number + 1,))
    assert len(only(log).time_ns) == 34


@pytest.mark.parametrize("name", ["chrony-statistics.log", "chrony-tracking.log"])
def test_a_line_of_chrony_that_ends_within_its_last_number_is_damaged(name: str) -> None:
    lines = golden(name).splitlines()
    lines[10] = lines[10][:-1]
    assert READERS[name]("\n".join(lines) + "\n").damaged_lines == (11,)


def test_what_chronyd_still_slews_away_is_in_the_offset_of_tracking() -> None:
    """It reckons from where the clock will be: 2 us there, while 3.7 ms are still to come."""
    line = (
        "2026-11-22 18:14:00 10.77.0.50       2     44.211      0.120  2.000e-06 N  1  1.958e-05"
        " -3.700e-03  1.038e-03  9.775e-04  3.650e-03\n"
    )
    assert only(read_chrony_tracking(line, TAI_UTC_S)).offset_ns.tolist() == [3_702_000]


@pytest.mark.parametrize(
    "line",
    [
        "ptp4l[26753.272]: master offset     -29912 s0 freq      +0 path del",
        "ptp4l[26753.272]: master offset -29912 s0 freq +0 path delay -27647ptp4l[26754.272]: master",
        "ptp4l[26753.272]: master off ptp4l[26754.272]: master offset -29912 s0 freq +0 path delay -27647",
        "ptp4l[26753.272]: master offset     -2x912 s0 freq      +0 path delay    -27647",
        "ptp4l[26753.272]: master offset -99999999999999999999 s0 freq +0 path delay 1",
        "53.272]: master offset     -29912 s0 freq      +0 path delay    -27647",
        "ptp4l[26753.272]: rms  362 max  511 freq     +0 +/-",
        "ptp4l[26753.272]: port 1: LISTENING to SLA",
        "\x00\x00\x00\x00",
    ],
)
def test_a_damaged_line_of_ptp4l_is_counted(line: str) -> None:
    log = read_ptp4l(f"ptp4l[1.000]: selected local clock\n{line}\n{golden('ptp4l.log')}")
    assert (log.damaged, log.damaged_lines) == (1, (2,))
    assert len(only(log).time_ns) == 35


@pytest.mark.parametrize("name", READERS)
def test_a_log_that_breaks_off_loses_its_last_line_only(name: str) -> None:
    text = golden(name)
    whole, cut = READERS[name](text), READERS[name](text[:-1])
    assert cut.damaged == 1
    assert cut.damaged_lines == (len(text.splitlines()),)

    def held(log: ClockLog) -> int:
        return (
            sum(len(one.time_ns) for one in log.series)
            + len(log.summaries)
            + len(log.port_changes)
            + log.other
        )

    assert held(whole) - held(cut) == 1


@pytest.mark.parametrize("name", [name for name in READERS if name.startswith("chrony")])
@pytest.mark.parametrize("damage", ["cut", "joined", "month", "year", "exponent"])
def test_a_damaged_line_of_chrony_is_counted(name: str, damage: str) -> None:
    lines = golden(name).splitlines()
    sound = len(only(READERS[name]("\n".join(lines) + "\n")).time_ns)
    line = lines[10]
    lines[10] = {
        "cut": line[:60],
        "joined": line + lines[11],
        "month": line.replace("2026-11", "2026-13"),
        "year": line.replace("2026-", "9026-"),
        "exponent": line.replace("e-", "e--", 1),
    }[damage]
    found = READERS[name]("\n".join(lines) + "\n")
    assert (found.damaged, found.damaged_lines) == (1, (11,))
    assert len(only(found).time_ns) == sound - 1


def test_each_server_is_a_series() -> None:
    text = golden("chrony-measurements.log")
    second = text.replace("10.77.0.1  ", "192.0.2.33 ")
    found = READERS["chrony-measurements.log"](text + second)
    assert [one.source for one in found.series] == ["10.77.0.1", "192.0.2.33"]


def poll(**changed: Any) -> str:
    line: dict[str, Any] = {
        "type": "poll", "time_tai_ns": 1_795_284_099_000_000_000, "offset_ns": 1500, "delay_ns": 240_001,
        "freq_ppb": -12.5, "state": "locked",
    }  # fmt: skip
    return json.dumps({**line, **changed}) + "\n"


def test_ntp_user() -> None:
    """A correction of -12.5 ppb slows the clock down: its oscillator is taken for 12.5 ppb fast."""
    log = read_ntp_user(
        '{"type":"start","server":"10.0.0.1"}\n' + poll() + poll(delay_ns=None, freq_ppb=None)
    )
    servo = only(log)
    assert (servo.program, servo.clock, log.other, log.damaged) == ("bw-ntp-user", "tai", 1, 0)
    assert servo.offset_ns.tolist() == [1500, 1500]
    assert (servo.path_delay_ns[0], servo.freq_ppb[0], servo.state[0]) == (120_000.5, 12.5, "locked")
    assert math.isnan(servo.path_delay_ns[1])
    assert math.isnan(servo.freq_ppb[1])


@pytest.mark.parametrize(
    "line",
    [
        '{"type":"poll","time_tai_ns":179528409',
        "{}\n",
        '{"type":7}\n',
        poll(offset_ns=1.5),
        poll(offset_ns=True),
        poll(offset_ns="5"),
        poll(offset_ns=None),
        poll(offset_ns=2**63),
        poll(time_tai_ns=None),
        poll(freq_ppb=math.nan),
        poll(freq_ppb=math.inf),
        poll(delay_ns="x"),
        poll(state=None),
    ],
)
def test_a_damaged_line_of_ntp_user_is_counted(line: str) -> None:
    log = read_ntp_user(poll() + line)
    assert (log.damaged, log.damaged_lines) == (1, (2,))
    assert len(only(log).time_ns) == 1


def synced(**changed: Any) -> str:
    line: dict[str, Any] = {
        "type": "sync", "time_tai_ns": 1_795_284_099_000_000_000, "monotonic_ns": 5, "offset_ns": -1500,
        "delay_ns": 240_001, "bound_ns": 90_000, "freq_ppb": -12.5, "stamps": "kernel", "servers": 1,
        "state": "locked",
    }  # fmt: skip
    return json.dumps({**line, **changed}) + "\n"


def test_the_time_service_says_how_far_it_was_ahead_and_how_fast_its_counter_is() -> None:
    others = '{"type":"ready"}\n{"type":"rejected","reason":"origin"}\n' + synced(
        offset_ns=None, state="init"
    )
    log = read_time_service(
        others + synced() + synced(delay_ns=None, freq_ppb=None, state="init") + synced(state="hold")
    )
    servo = only(log)
    assert (servo.program, servo.clock, log.other, log.damaged) == ("bw-timed", "monotonic", 4, 0)
    assert servo.offset_ns.tolist() == [-1500, -1500]
    assert (servo.path_delay_ns[0], servo.freq_ppb[0], servo.state) == (120_000.5, -12.5, ("locked", "init"))
    assert math.isnan(servo.freq_ppb[1])


@pytest.mark.parametrize(
    "line",
    ['{"type":"sync","time_t', synced(offset_ns=1.5), synced(state=7), synced(monotonic_ns=None)],
)
def test_a_damaged_line_of_the_time_service_is_counted(line: str) -> None:
    log = read_time_service(synced() + line)
    assert (log.damaged, log.damaged_lines) == (1, (2,))


def test_empty_logs() -> None:
    for reader in (*READERS.values(), read_phc2sys, read_ntp_user, read_time_service):
        assert reader("") == ClockLog((), (), (), 0, (), 0)
        assert reader("\n\n  \n").damaged == 0


@given(st.text(max_size=200), st.sampled_from(sorted(READERS)))
def test_no_text_breaks_a_reader(text: str, name: str) -> None:
    lines = golden(name).splitlines(keepends=True)
    READERS[name]("".join(lines[:12]) + text)
    read_phc2sys(text)
    read_ntp_user(text)


STRIPCHART = """Tracking 10.77.0.50 [10.77.0.50:123].
The current time is 11/22/2026 11:59:58 PM.
23:59:58, +00.0012345s
00:00:00, -00.0000120s
00:00:02, error: 0x800705B4
00:00:04, +00,0000007s
00:00:06, +00.00
Temps : 0x800705B4
00:00:08, Fehler: 0x800705B4
"""


def test_the_chart_of_windows_has_its_sign_turned_and_counts_over_midnight() -> None:
    """w32tm prints server - target; some languages have a decimal comma; a failed look is no observation."""
    log = read_stripchart(STRIPCHART.replace("\n", "\r\n"))
    series = only(log)
    assert series.offset_ns.tolist() == [-1_234_500, 12_000, -700]
    assert (series.time_ns // NS_PER_S).tolist() == [0, 2, 6]
    assert series.state == ("measured",) * 3
    assert (log.damaged, log.damaged_lines, log.foreign, log.other) == (3, (5, 7, 9), 3, 0)


FOREIGN = (
    "words",
    "[]",
    "7",
    "[" * 100_000,
    "Tracking 10.77.0.50 [10.77.0.50:123].",
    "I0106 daemon.go:412] x",
)
JOURNAL = (
    "-- Logs begin at Tue 2019-09-03 09:27:20 UTC, end at Tue 2019-09-03 11:02:00 UTC. --",
    "-- Reboot --",
)


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("line", [*FOREIGN, *JOURNAL], ids=lambda line: line[:12])
def test_a_line_without_the_mark_of_a_format_is_foreign(name: str, line: str) -> None:
    """Also where it is cut: nothing tells that it is one of ours."""
    whole, found = READERS[name](golden(name)), READERS[name](f"{golden(name)}{line}")
    assert (found.damaged, found.foreign) == (whole.damaged, whole.foreign + 1)


def test_every_number_of_64_bits_is_an_offset() -> None:
    line = "ptp4l[5.001]: master offset {} s0 freq +100000000 path delay 26433466\n"
    assert only(read_ptp4l(line.format(-(2**63) + 1))).offset_ns.tolist() == [-(2**63) + 1]
    assert read_ptp4l(line.format(2**63)).damaged == 1


def test_a_journal_over_two_boots_is_a_series_each() -> None:
    """By journalctl's own line, and where the clock of the machine has begun anew."""
    line = "Sep 03 10:27:0{0} board2 ptp4l[166]: [{1}.229] master offset -14 s2 freq -2005 path delay 612\n"
    first, later, anew = ("".join(line.format(n, at + n) for n in range(3)) for at in (4083, 9000, 13))
    for text in (f"{JOURNAL[0]}\n{first}{JOURNAL[1]}\n{later}", f"{first}{anew}"):
        found = read_ptp4l(text)
        assert [one.source for one in found.series] == ["master, boot 1", "master, boot 2"]
        assert [int(one.time_ns[-1] - one.time_ns[0]) for one in found.series] == [2 * NS_PER_S] * 2
        assert found.damaged == 0


SYSLOG = "Oct  3 08:00:00 {0}ptp4l{1}: [{2:.3f}] {3}master offset 21 s2 freq +1203 path delay 990\n"


def times_s(log: ClockLog) -> dict[str, list[float]]:
    return {one.source: (one.time_ns / NS_PER_S).tolist() for one in log.series}


def test_hosts_in_one_log_each_have_an_uptime_and_boots_of_their_own() -> None:
    uptimes_s = {"bench-a ": (5000.1, 5001.1, 12.5), "192.0.2.7 ": (91000.2, 91001.2, 91002.2)}
    text = "".join(
        SYSLOG.format(host, "", times[n], "") for n in range(3) for host, times in uptimes_s.items()
    )
    assert times_s(read_ptp4l(text)) == {
        "master, bench-a, boot 1": [5000.1, 5001.1],
        "master, 192.0.2.7, boot 1": [91000.2, 91001.2, 91002.2],
        "master, bench-a, boot 2": [12.5],
    }


@pytest.mark.parametrize(
    ("processes", "tags", "sources"),
    [
        (("[811]", "[812]"), ("", ""), ("master, process 811", "master, process 812")),
        (("", ""), ("[a] ", "[b] "), ("a master", "b master")),
    ],
)
def test_programs_of_one_host_out_of_order_are_no_boots(
    processes: tuple[str, str], tags: tuple[str, str], sources: tuple[str, str]
) -> None:
    text = "".join(
        SYSLOG.format("bench ", process, 700.126 + n - late_s, tag)
        for n in range(3)
        for process, tag, late_s in zip(processes, tags, (0, 0.001), strict=True)
    )
    expected_s = ([700.126, 701.126, 702.126], [700.125, 701.125, 702.125])
    assert times_s(read_ptp4l(text)) == dict(zip(sources, expected_s, strict=True))


@pytest.mark.parametrize("before", ["2026-10-03T08:00:0{0}.125Z ", "1791000000.12{0} ", "[  70{0}.1] "])
def test_a_time_before_a_program_is_no_host(before: str) -> None:
    line = "ptp4l[70{0}.125]: master offset 26 s2 freq +1203 path delay 990\n"
    assert times_s(read_ptp4l("".join((before + line).format(n) for n in range(3)))) == {
        "master": [700.125, 701.125, 702.125]
    }


def test_a_journal_without_names_is_read_by_the_form_of_its_lines() -> None:
    text = "[100.500] master offset -10 s2 freq -2010 path delay 612\n[101.500] Accepted publickey\n"
    assert only(read_ptp4l(text)).offset_ns.tolist() == [-10]
    assert (read_ptp4l(text).foreign, read_ptp4l(text).damaged) == (1, 0)
    assert read_phc2sys(text).series == ()


def test_ts2phc_and_older_forms() -> None:
    found = read_ts2phc(
        "ts2phc[82674.465]: ens2f0 offset          -3 s2 freq      -0\n"
        "ts2phc[82675.465]: [ts2phc.0.config] /dev/ptp1 master offset 4 s3 freq +7 holdover\n"
    )
    assert [one.source for one in found.series] == ["ens2f0", "ts2phc.0.config /dev/ptp1 master"]
    assert [int(one.offset_ns[0]) for one in found.series] == [-3, 4]
    old = read_phc2sys("phc2sys[616.617]: phc offset 55341 s0 freq +0 delay 2729\n")
    assert (only(old).source, only(old).offset_ns.tolist()) == ("phc", [55341])


def test_a_step_that_the_servo_states_ends_a_stretch() -> None:
    text = "".join(
        f"phc2sys[{n}.000]: CLOCK_REALTIME phc offset {offset} {state} freq -3563 delay 519\n"
        for n, (offset, state) in enumerate([(-513283, "s0"), (-513297, "s1"), *[(-20, "s2")] * 20])
    )
    series = only(read_phc2sys(text))
    assert [len(stretch) for stretch in series.clock_series().stretches] == [2, 20]
    before, locked = series.parts()
    assert before is not None
    assert locked is not None
    assert (before.offset_ns.tolist(), len(locked.offset_ns)) == ([-513283, -513297], 20)
