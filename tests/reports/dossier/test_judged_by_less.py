# SPDX-License-Identifier: Apache-2.0
"""A pass that was judged by less than its requirement asks is none: limits, loss, samples, subject, mask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reports.dossier.gather import named_file
from reports.dossier.model import Request
from reports.record.measurement import Limit, Subject
from tests.reports.dossier.sample import gather, record, requirements_text, small_run
from tests.reports.dossier.test_gather import row, said

ONE = requirements_text("DAQ-031")
HEAD = '[requirements]\nschema = "benchwright.requirements/2"\nname = "x"\n[[requirement]]\n'


def asked_by(folder: Path, requirements: str) -> Request:
    """Return a request that names a file of requirements."""
    file = folder / "named.toml"
    file.write_text(requirements)
    return Request(None, None, None, None, (named_file("requirements", file),), ())


@pytest.mark.parametrize(
    ("changes", "remark"),
    [
        ({"allowed_lost": 3}, "judged with 3 lost allowed, the requirement is 0"),
        (
            {"subject": Subject("bench-1", "linux-rt", "kernel", "two-way", "32")},
            "measured of stream 32, the requirement is on stream 31",
        ),
    ],
)
def test_a_pass_by_less_than_the_requirement_asks_is_none(
    tmp_path: Path, changes: dict[str, Any], remark: str
):
    found = gather([small_run(tmp_path, record(**changes), requirements=ONE).path])
    assert (row(found, "DAQ-031").status, found.conclusion.word) == ("inconclusive", "not accepted")
    assert remark in said(found)


def test_a_pass_from_fewer_samples_than_the_requirement_asks_is_none(tmp_path: Path):
    text = (
        f'{HEAD}id = "C"\n'
        'clock = "chrony"\nquantity = "sync_offset"\nstatistic = "max_abs"\nupper_us = 50000\n'
        'samples = 1000\nsource = "x"\n'
    )
    of: dict[str, Any] = {"requirement": "C", "quantity": "sync_offset", "statistic": "max_abs"}
    clock = record(**of, subject=Subject("bench-1", "linux-rt", clock="chrony"))
    found = gather([small_run(tmp_path, clock, requirements=text).path])
    assert "judged from 99 samples, the requirement is 1000" in said(found)


@pytest.mark.parametrize(
    ("kept", "asked_for", "remark"),
    [
        ("lost_percent = 60", "", "judged with 60 % lost allowed, the requirement is 0 %"),
        ("lost_percent = 60", "lost_percent = 1", "judged with 60 % lost allowed, the requirement is 1 %"),
        ("lost_percent = 1", "lost_percent = 1", ""),
        ("lost_percent = 1", "lost_percent = 2.5", ""),
    ],
)
def test_a_pass_with_a_larger_share_lost_than_the_named_file_allows_is_none(
    tmp_path: Path, kept: str, asked_for: str, remark: str
):
    """The record has a number: of how many edges stands nowhere in it."""
    text = (
        f'{HEAD}id = "E"\n'
        'method = "tgpio-latch"\nquantity = "edge_delay"\nstatistic = "mean"\nupper_ns = 50000000\n'
        'samples = 99\nsource = "x"\n'
    )
    edges = record(
        requirement="E",
        quantity="edge_delay",
        statistic="mean",
        limit=Limit(50_000_000, -50_000_000, "x"),
        lost=1,
        allowed_lost=600,
        subject=Subject("bench-1", "linux-rt", method="tgpio-latch"),
    )
    found = gather(
        [small_run(tmp_path, edges, requirements=text + kept).path], asked_by(tmp_path, text + asked_for)
    )
    assert found.conclusion.word == ("not accepted" if remark else "accepted")
    assert remark in said(found)


@pytest.mark.parametrize(
    ("kept", "asked_for", "remark"),
    [
        (
            'mask = "paper-40us"',
            'mask = "g8273-2-class-d"',
            "judged by mask paper-40us, the requirement is mask",
        ),
        (
            'mask = "paper-40us"\nmask_from_tau_s = 10.0\nmask_to_tau_s = 100.0',
            'mask = "paper-40us"\nmask_to_tau_s = 1000.0',
            "judged by its mask from 10 to 100 s, the requirement is from 0 to 1000 s",
        ),
        ('mask = "paper-40us"', 'mask = "paper-40us"\nmask_to_tau_s = 10.0', ""),
    ],
)
def test_a_pass_by_another_mask_than_the_named_file_asks_is_none(
    tmp_path: Path, kept: str, asked_for: str, remark: str
):
    text = (
        f'{HEAD}id = "C"\n'
        'clock = "as-found"\nquantity = "sync_offset"\nstatistic = "max_abs"\nupper_ns = 50000000\n'
        'lock_within_s = 60\nsource = "x"\n'
    )
    of: dict[str, Any] = {"requirement": "C", "subject": Subject("bench-1", "linux-rt", clock="as-found")}
    offset = record(**of, quantity="sync_offset", statistic="max_abs")
    error = record(**of, quantity="te", statistic="max_abs")
    run = small_run(tmp_path, offset, error, requirements=text + kept)
    found = gather([run.path], asked_by(tmp_path, text + asked_for))
    assert found.conclusion.word == ("not accepted" if remark else "accepted")
    assert remark in said(found)
