# SPDX-License-Identifier: Apache-2.0
"""The clocks of a bench, known against its reference, turned into what they are against the time server's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hw.errors import MeasurementError
from resources.clock_sync.lines import ClockLine
from resources.daq_replay.clock import server_lines

T0_NS = 1_790_000_000_000_000_000
OFFSETS_NS = st.integers(-(10**10), 10**10)
RATES_PPB = st.integers(-100_000, 100_000)


def _line(name: str, at_ns: int, offset_ns: int, rate_ppb: int, bound_ns: int = 50_000) -> ClockLine:
    """Return a line of a clock with this offset at T0_NS and this rate, as measured at a moment."""
    return ClockLine(name, at_ns, offset_ns + (at_ns - T0_NS) * rate_ppb // 10**9, rate_ppb, bound_ns)


@given(OFFSETS_NS, RATES_PPB, OFFSETS_NS, RATES_PPB)
def test_a_clock_stands_against_the_server_as_it_does(
    offset_ns: int, rate_ppb: int, server_offset_ns: int, server_rate_ppb: int
) -> None:
    after_ns = T0_NS + 80 * 10**9
    reference = ClockLine("host", 0, 0, 0, 0)
    before = {
        "host": reference,
        "guest": _line("guest", T0_NS, offset_ns, rate_ppb),
        "gm": _line("gm", T0_NS + 10**9, server_offset_ns, server_rate_ppb, 70_000),
    }
    after = {
        "host": reference,
        "guest": _line("guest", after_ns, offset_ns, rate_ppb),
        "gm": _line("gm", after_ns, server_offset_ns, server_rate_ppb),
    }
    lines = {line.name: line for line in server_lines("gm", before, after)}
    assert (lines["gm"].offset_ns, lines["gm"].bound_ns) == (0, 0)
    assert lines["host"].bound_ns == 70_000
    assert lines["guest"].bound_ns == 120_000
    for name, line in lines.items():
        assert line.residual_ns <= 4
        later_ns = T0_NS + 60 * 10**9
        true_ns = after[name].local_ns(later_ns) - after["gm"].local_ns(later_ns)
        # rates are small: what their product leaves over a minute is below a microsecond
        assert abs(line.offset_at(after["gm"].local_ns(later_ns)) - true_ns) < 1_500


def test_a_rate_that_changed_shows_as_residual() -> None:
    before = {"host": ClockLine("host", 0, 0, 0, 0), "gm": ClockLine("gm", T0_NS, 0, 1_000, 50_000)}
    after = {"host": before["host"], "gm": ClockLine("gm", T0_NS + 100 * 10**9, 300_000, 1_000, 50_000)}
    lines = {line.name: line for line in server_lines("gm", before, after)}
    assert lines["host"].residual_ns == 200_000


def test_a_server_that_was_not_measured_afterwards_is_refused() -> None:
    before = {"host": ClockLine("host", 0, 0, 0, 0), "gm": ClockLine("gm", T0_NS, 0, 0, 1)}
    with pytest.raises(MeasurementError, match="gm"):
        server_lines("gm", before, {"host": before["host"]})
