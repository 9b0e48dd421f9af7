# SPDX-License-Identifier: Apache-2.0
"""A large log comes to the same whether its lines are read together or one by one, however it is damaged."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

from reports.clock_sync import chrony_logs, linuxptp_logs, logs
from reports.clock_sync.alike_lines import Decimals, Number, decimals
from reports.clock_sync.log_formats import LOG_READERS
from reports.clock_sync.logs import ClockLog, nanoseconds
from tests.campaign import Campaign

Line = Callable[[Random, int], str]


def ptp4l(random: Random, number: int) -> str:
    offset, delay = round(random.gauss(0, 10 ** random.randint(1, 7))), random.randint(-9, 10_000)
    state = random.choice(("s0", "s1", "s2", "s2", "s2", "s2"))
    freq = round(random.gauss(0, 4000))
    time = f"ptp4l[{990 + number / 8:.3f}]"
    return f"{time}: master offset {offset:10d} {state} freq {freq:+7d} path delay {delay:9d}"


def of_a_system(random: Random, number: int) -> str:
    """Of two hosts, and of two programs of each."""
    host, program = random.choice(("lab12", "lab13")), random.choice(("ptp4l[812]", "phc2sys[77]"))
    day, minute, second = 9 + number // 300, number // 60 % 60, number % 60
    time = f"Nov {day:2d} 10:{minute:02d}:{second:02d} {host} {program}: [{5000 + number}.125]"
    offset, freq = random.randint(-2000, 2000), random.randint(-99, 99)
    if program.startswith("ptp4l"):
        return (
            f"{time} master offset {offset:10d} s2 freq {freq:+7d} path delay {random.randint(1, 99999):9d}"
        )
    return (
        f"{time} CLOCK_REALTIME phc offset {offset:9d} s2 freq {freq:+7d} delay {random.randint(1, 9999):6d}"
    )


def ts2phc(random: Random, number: int) -> str:
    offset = random.randint(-200, 200)
    time = f"ts2phc[{100 + number}.{random.randint(0, 999):03d}]"
    return f"{time}: ens1 master offset {offset:10d} s2 freq {offset:+7d}"


def date(number: int) -> str:
    """Return a date as chrony has it; one of 61 is none."""
    month, day = 1 + number // 2000, 1 + number // 86 % 31
    return f"2026-{month:02d}-{day:02d} {number % 24:02d}:{number % 60:02d}:{number % 61:02d}"


def real(random: Random) -> str:
    value = random.choice((0.0, random.gauss(0, 10 ** random.randint(-12, 2))))
    return f"{value:10.3e}"


def tracking(random: Random, number: int) -> str:
    of = [real(random) for _ in range(5)]
    freq, state = random.gauss(0, 30), random.choice("NNNN?+")
    return (
        f"{date(number)} {random.choice(('10.0.0.1', 'ntp.lab.test')):15s} {random.choice('1234'):>2s}"
        f" {freq:10.3f} {abs(freq):10.3f} {of[0]} {state} {random.randint(1, 4):2d} {of[1]} {of[2]} {of[3]}"
        f" {of[4]} {abs(random.gauss(0, 1e-3)):10.3e}"
    )


def statistics(random: Random, number: int) -> str:
    of = " ".join(real(random) for _ in range(6))
    last = f"{random.randint(3, 40):3d}  0 {random.randint(2, 9):3d} {random.gauss(0, 2):5.2f}"
    return f"{date(number)} 10.0.0.1        {of} {last}"


def measurements(random: Random, number: int) -> str:
    of = " ".join(real(random) for _ in range(6))
    return f"{date(number)} 10.0.0.1        N  2 111 111 1111   6  6 {of} 0A000001 4B K K"


LINES: dict[str, Line] = {
    each.__name__: each for each in (ptp4l, of_a_system, ts2phc, tracking, statistics, measurements)
}
OTHERS = (
    "", "   ", "=" * 40, "-- Boot 0123456789abcdef --", "a line of another program", "-- Reboot --",
    "ptp4l[17.000]: port 1: UNCALIBRATED to SLAVE on MASTER_CLOCK_SELECTED",
    "ptp4l[3.100]: rms 12 max 33 freq -3000 +/- 10 delay 600 +/- 2", "\u00e9", "x\ufffdy",
)  # fmt: skip


def damaged(random: Random, text: str) -> str:
    """Return a line with some of its characters cut off, doubled, or others."""
    at = random.randrange(len(text) + 1)
    with_other = text[:at] + random.choice("0159+-. eSs[]:") + text[at + 1 :]
    return random.choice((text[:at], text + text[at:], with_other, with_other, f"{text} ", f"{text}\r"))


def log_of(random: Random, line: Line) -> str:
    share, others = random.choice((0, 0.02, 0.2)), random.choice((0, 0.01))
    lines: list[str] = []
    for number in range(random.randint(200, 700)):
        text = line(random, number)
        if random.random() < share:
            text = damaged(random, text)
        if random.random() < others:
            lines.append(random.choice(OTHERS))
        lines.append(text)
    return "\n".join(lines) + random.choice(("\n", ""))


def told(log: ClockLog) -> Any:
    arrays = ("time_ns", "offset_ns", "freq_ppb", "path_delay_ns")
    series = [
        (
            *(each.program, each.source, each.clock, each.state),
            *(np.nan_to_num(getattr(each, name), nan=1e300).tolist() for name in arrays),
        )
        for each in log.series
    ]
    return series, log.port_changes, log.summaries, log.damaged, log.damaged_lines, log.other, log.foreign


@pytest.mark.parametrize("kind", LINES)
def test_together_or_one_by_one_is_the_same(
    kind: str, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [log_of(random, LINES[kind]) for random in campaign.rounds(25)]
    names = [name for name in LOG_READERS if name.startswith(("ptp4l", "phc2sys", "ts2phc", "chrony"))]
    together = [[told(LOG_READERS[name](text, 37)) for name in names] for text in texts]

    def by_line(text: str, program: str, clock: logs.TimeBase, read_line: Any, _form: Any = None) -> ClockLog:
        return logs.read_lines(text, program, clock, read_line)

    for module in (chrony_logs, linuxptp_logs):
        monkeypatch.setattr(module, "read_lines", by_line)
    for text, found in zip(texts, together, strict=True):
        for name, one in zip(names, found, strict=True):
            assert one == told(LOG_READERS[name](text, 37)), (name, text[:300])


@pytest.mark.parametrize("kind", LINES)
def test_most_lines_of_a_sound_log_are_read_together(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else nothing is gained. Of six formats one reads them: that one has most of its lines so."""
    random = Random(14)
    text = "".join(LINES[kind](random, number) + "\n" for number in range(5000))
    left: list[int] = []
    take = logs.take_alike

    def noting(lines: logs.Lines, *arguments: Any) -> None:
        take(lines, *arguments)
        left.append(len(lines.left()))

    monkeypatch.setattr(logs, "take_alike", noting)
    for name in LOG_READERS:
        LOG_READERS[name](text, 37)
    assert min(left) < 0.4 * 5000, left


def test_decimals_are_rounded_and_read_as_python_does() -> None:
    random = Random(5)
    form = Number(0, 4, "any", (5, 8), (9, 12))
    texts = [
        f"{random.choice((' ', '', '-', '+')) + str(random.randint(0, 99)):>4s}.{random.randint(0, 999):03d}"
        f"e{random.choice('+--')}{random.randint(0, 12):02d}"
        for _ in range(3000)
    ]
    texts += [f"   {digit}.500e-09" for digit in range(10)] + [f"  -{digit}.500e-09" for digit in range(10)]
    data = np.array([list(text.encode()) for text in texts], np.uint8).T
    found: Decimals = decimals(data, form)
    fits = found.fits(9)
    assert fits.mean() > 0.6
    rounded, floats = found.rounded(9), found.floats()
    for place in np.flatnonzero(fits):
        assert rounded[place] == nanoseconds(texts[place]), texts[place]
    for place in np.flatnonzero(found.fits(0)):
        assert floats[place] == float(texts[place]), texts[place]
