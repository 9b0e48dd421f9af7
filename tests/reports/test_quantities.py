# SPDX-License-Identifier: Apache-2.0
"""Every quantity that is recorded has its row, and every part of U that a record can have its meaning."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reports import Limit, Subject
from reports.errors import RecordError
from reports.quantities import PART_MEANINGS, QUANTITIES
from reports.record.context import Context, Sample, build_record
from reports.record.measurement import Conditions, Uncertainty
from reports.record.verdict import Verdict

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [file for folder in ("reports", "resources", "scope") for file in (ROOT / folder).rglob("*.py")]
KNOWN_DELAY_PARTS = {"median_without", "median_with", "target_drift", "set_delay"}
"""Parts of the bound of a check, whose record has no U of its own."""


def test_every_part_of_u_has_a_meaning() -> None:
    named = {
        name
        for file in SOURCES
        for name in re.findall(r'(?:UncertaintyPart|Part)\(\s*"(\w+)"', file.read_text(encoding="utf-8"))
    }
    assert len(named) > 15
    assert named - KNOWN_DELAY_PARTS <= set(PART_MEANINGS)


def test_a_quantity_without_a_row_is_no_record() -> None:
    sample = Sample("made_up", "max", 1, 5, 1)
    verdict = Verdict("pass", 9, "")
    context = Context("run-1", "test", Subject("lab", "arm"), Conditions("ci"), True, ())
    nothing = Uncertainty.from_parts([])
    with pytest.raises(RecordError, match=r"quantity 'made_up': no reports/\*/capability\.py has it"):
        build_record("REQ-1", sample, Limit(10, None, "the test"), nothing, verdict, context)


def test_checks_of_the_bench_never_follow_as_what_a_target_can_do() -> None:
    assert not {name for name, row in QUANTITIES.items() if row.is_check and row.series == "verdict"}
    assert {name for name, row in QUANTITIES.items() if row.series == "verdict"} == {
        "largest_pattern",
        "loop_out_of_picture",
        "provisioning_difference",
        "bound_missed",
        "bound_width",
        "u_missed",
        "u_width",
        "reads_left_out",
        "holdover_rate",
        "bulk_rise",
        "receive_rise",
        "message_throughput",
        "bulk_payload_difference",
        "bulk_unmatched",
        "stack_latency_difference",
        "stack_over_budget_difference",
    }
