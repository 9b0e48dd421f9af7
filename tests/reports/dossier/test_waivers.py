# SPDX-License-Identifier: Apache-2.0
"""Waivers: what is wrong in their file is named with field and range, and nothing wrong is let through."""

from __future__ import annotations

import dataclasses
import datetime

import pytest

from reports.dossier.errors import DossierError
from reports.dossier.waivers import Scope, Trial, check_waivers, read_waivers
from tests.reports.dossier.sample import record

HEAD = '[waivers]\nschema = "benchwright.waivers/1"\n'
ONE = """
[[waiver]]
id = "W-1"
requirement = "DAQ-013"
run = "run-1"
attempt = 2
reason = "the switch was restarted"
approver = "A. Reviewer"
date = 2026-11-22
expires = 2027-03-31
"""
DAY = datetime.date(2026, 11, 23)
TARGET = "linux-rt on hall-7"
SCOPE = Scope(
    {TARGET: ("DAQ-013", "DAQ-014")},
    {"run-1": datetime.date(2026, 11, 21), "run-2": None},
    [Trial("run-1", "DAQ-013", TARGET, "kernel", number) for number in (1, 2)],
)
TWO_TARGETS = dataclasses.replace(
    SCOPE,
    requirements={TARGET: ("DAQ-013",), "windows on hall-7": ("DAQ-013",)},
    trials=[*SCOPE.trials, Trial("run-1", "DAQ-013", "windows on hall-7", "kernel", 1)],
)
TWO_STACKS = dataclasses.replace(SCOPE, trials=[*SCOPE.trials, Trial("run-1", "DAQ-013", TARGET, "rtdip", 1)])


def read(text: str, scope: Scope = SCOPE) -> None:
    check_waivers(read_waivers(text.encode(), "waivers.toml"), DAY, scope)


def test_a_whole_waiver_is_read():
    found = read_waivers((HEAD + ONE).encode(), "waivers.toml").all[0]
    assert (found.requirement, found.run, found.attempt) == ("DAQ-013", "run-1", 2)
    assert found.expires == datetime.date(2027, 3, 31)
    assert not found.concedes
    read(HEAD + ONE)


def test_a_waiver_of_a_requirement_alone_concedes_it():
    of = f'target = "{TARGET}"\nstack = "kernel"\n'
    text = HEAD + ONE.replace('run = "run-1"\nattempt = 2\n', of)
    found = read_waivers(text.encode(), "waivers.toml")
    assert found.conceding("DAQ-013", TARGET, "kernel") is found.all[0]
    assert found.conceding("DAQ-013", TARGET, None) is found.all[0]
    assert found.conceding("DAQ-014", TARGET, "kernel") is None
    assert found.conceding("DAQ-013", "windows on hall-7", "kernel") is None
    assert found.conceding("DAQ-013", TARGET, "rtdip") is None
    assert found.setting_aside(record(requirement="DAQ-013"), "run-1", 1) is None
    read(text)
    read(text, TWO_TARGETS)
    read(text, TWO_STACKS)


@pytest.mark.parametrize(
    ("scope", "given", "said"),
    [
        (SCOPE, "", r"target: missing; the waiver is of one of: linux-rt on hall-7"),
        (SCOPE, f'target = "{TARGET}"', r"stack: missing; the waiver is of one of: kernel"),
        (SCOPE, f'target = "{TARGET}"\nstack = "rtdip"', r"stack: 'rtdip' is not known; there are: kernel"),
        (SCOPE, 'target = "linux-rt"', r"target: 'linux-rt' is not known; there are: linux-rt on hall-7"),
        (TWO_TARGETS, 'run = "run-1"', r"target: missing; .* linux-rt on hall-7, windows on hall-7"),
        (TWO_STACKS, 'run = "run-1"', r"stack: missing; the waiver is of one of: kernel, rtdip"),
    ],
)
def test_a_waiver_is_of_one_target_and_stack(scope: Scope, given: str, said: str):
    with pytest.raises(DossierError, match=rf"waiver\[1\]\.{said}"):
        read(HEAD + ONE.replace('run = "run-1"\nattempt = 2', given), scope)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('schema = "benchwright.waivers/1"', 'schema = "x"', "waivers: must hold schema"),
        ('id = "W-1"', 'id = "W-1"\nname = "x"', r"waiver\[1\].name: unknown key \(allowed: id, requirement"),
        ('id = "W-1"\n', "", r"waiver\[1\].id: must be a text"),
        ('reason = "the switch was restarted"', 'reason = " "', r"waiver\[1\].reason: must be a text"),
        ('approver = "A. Reviewer"\n', "", r"waiver\[1\].approver: must be a text"),
        ("date = 2026-11-22\n", "", r"waiver\[1\].date: missing key"),
        ("date = 2026-11-22", 'date = "2026-11-22"', r"waiver\[1\].date: must be a date YYYY-MM-DD"),
        ("date = 2026-11-22", "date = 2026-11-22T10:00:00", r"waiver\[1\].date: must be a date"),
        ("expires = 2027-03-31", "expires = 2026-11-21", r"waiver\[1\].expires: .* is before date"),
        (
            "expires = 2027-03-31",
            "expires = 2026-11-22",
            r"waiver\[1\].expires: expired on 2026-11-22; .* 2026-11-23",
        ),
        (
            "date = 2026-11-22",
            "date = 2026-11-24",
            r"waiver\[1\].date: 2026-11-24 is after the dossier's date",
        ),
        (
            "date = 2026-11-22",
            "date = 2026-11-20",
            r"waiver\[1\].date: 2026-11-20 is before 2026-11-21 \(UTC\), when what it is of was measured",
        ),
        ('"A. Reviewer"', '"\\u200b"', r"waiver\[1\].approver: must be a text with a letter or digit"),
        ('"A. Reviewer"', '"\\u3164"', r"waiver\[1\].approver: must be a text with a letter or digit"),
        ('"A. Reviewer"', '"--"', r"waiver\[1\].approver: must be a text with a letter or digit"),
        ('"A. Reviewer"', '"A.\\u202e B."', r"waiver\[1\].approver: holds U\+202E, which is not seen"),
        ('"W-1"', '"W-1\\u200b"', r"waiver\[1\].id: holds U\+200B, which is not seen"),
        ('"the switch was restarted"', '"\\u2800"', r"waiver\[1\].reason: must be a text with a letter"),
        ("attempt = 2", "attempt = 3", r"waiver\[1\].attempt: found 3, allowed: 1 to 2"),
        ("attempt = 2", "attempt = 0", r"waiver\[1\].attempt: must be a whole number from 1 to 1000"),
        ("attempt = 2", "attempt = true", r"waiver\[1\].attempt: must be a whole number"),
        ('run = "run-1"\n', "", r"waiver\[1\].attempt: only with both"),
        ('requirement = "DAQ-013"\n', "", r"waiver\[1\].attempt: only with both"),
        ('requirement = "DAQ-013"\nrun = "run-1"\nattempt = 2\n', "", r"waiver\[1\].requirement: missing"),
        (
            '"DAQ-013"',
            '"DAQ-999"',
            r"waiver\[1\].requirement: 'DAQ-999' is not known; there are: DAQ-013, DAQ-014",
        ),
        ('"run-1"', '"run-9"', r"waiver\[1\].run: 'run-9' is not known; there are: run-1, run-2"),
        ('"run-1"\nattempt = 2', '"run-2"', r"waiver\[1\].attempt: .* the run did not measure DAQ-013"),
        (ONE, ONE + ONE, r"waiver\[2\].id: 'W-1' stands twice"),
        ("[[waiver]]", "[waiver]", "waiver: must be an array of tables"),
        ("[[waiver]]", "[note]\n[[waiver]]", "note: unknown table"),
        ("id =", "id = =", "waivers.toml: "),
    ],
)
def test_what_is_wrong_is_named(old: str, new: str, said: str):
    text = HEAD + ONE
    assert old in text
    with pytest.raises(DossierError, match=said) as caught:
        read(text.replace(old, new, 1))
    assert str(caught.value).startswith("waivers.toml: ")
    assert caught.value.exit_code == 2


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(DossierError, match=r"waivers\.toml"):
        read_waivers(b"\xff\xfe", "waivers.toml")


def test_a_waiver_of_tomorrow_is_seen():
    found = read_waivers((HEAD + ONE).encode(), "waivers.toml")
    assert found.future(datetime.date(2026, 11, 22)) == []
    (problem,) = found.future(datetime.date(2026, 11, 21))
    assert problem.startswith("waivers.toml: waiver[1].date: 2026-11-22 is in the future")
