# SPDX-License-Identifier: Apache-2.0
"""The page of a run in which nothing arrived for ten seconds is no larger than a reader's patience."""

from __future__ import annotations

import json
from pathlib import Path

from reports.daq_replay.evidence import load_replay
from reports.daq_replay.late_messages import latest_messages
from reports.page.render import PAGE, render_pages
from tests.reports.sample_run import START_TAI_NS, Disturbance, make_run

S = 1_000_000_000
BEGIN_NS, END_NS = 20 * S, 30 * S
PAGE_MAX_BYTES = 3_000_000


def test_an_outage_of_ten_seconds_makes_no_large_page(tmp_path: Path) -> None:
    """Each message is late, the machine pauses each millisecond, the emulator was read every 250 µs."""
    run = make_run(tmp_path, Disturbance(outage_ns=(BEGIN_NS, END_NS)))
    folder = run.path / "evidence/daq_replay/attempt-1"
    witness = json.loads((folder / "witness.ndjson").read_text())
    begin = START_TAI_NS + BEGIN_NS
    witness["windows"] = [
        [begin + n * 1_000_000, begin + n * 1_000_000 + 400_000, n % 2] for n in range(10_000)
    ]
    (folder / "witness.ndjson").write_text(json.dumps(witness) + "\n")
    ran = [[n * 250_000, 200_000 if n % 3 else 0] for n in range(40_000)]
    latest = latest_messages(load_replay(folder).replay())
    assert len(latest) > 4
    around = [
        {"stream": int(each.stream), "sequence": each.sequence, "period_ns": 250_000, "vcpu_ran_ns": ran}
        for each in latest
    ]
    (folder / "emulation.ndjson").write_text("".join(json.dumps(each) + "\n" for each in around))
    assert len((folder / "misses.ndjson").read_text().splitlines()) > 3_000
    page = render_pages(run.path)[PAGE]
    assert len(page.encode()) < PAGE_MAX_BYTES
    assert "Late messages and the pauses of the machine around them" in page
