# SPDX-License-Identifier: Apache-2.0
"""Requirements files: the project's own are read whole; wrong ones are refused by file and field."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from reports.errors import RequirementsError
from reports.requirements import KEPT, merged, read_set, requirements_for, sets_of_run
from tests.reports.dossier.sample import ROOT, requirements_text

FILES = sorted((ROOT / "robot" / "requirements").glob("*.toml"))
GOOD = requirements_text("DAQ-031", "DAQ-032")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_projects_own_files_are_read_whole(file: Path):
    found = read_set(file.read_bytes(), file.name)
    tables = tomllib.loads(file.read_text())["requirement"]
    assert [each.id for each in found.requirements] == [table["id"] for table in tables]
    for requirement, table in zip(found.requirements, tables, strict=True):
        part = requirement.parts[0]
        assert part.lower == table.get("lower_producers")
        if part.lower is not None:
            assert (part.upper, part.subject) == (None, None)
            continue
        limits = [
            table[key] * factor
            for key, factor in (("upper_us", 1000), ("limit_ns", 1), ("upper_facts", 1))
            if key in table
        ]
        assert [part.upper] == limits
        assert ("at most 0 facts" in requirement.text) == ("upper_facts" in table)
        assert part.subject is not None
        assert part.subject[1] in map(str, table.values())
        names = {name for each in requirement.parts for name in each.quantities}
        assert ("lock_time" in names) == ("lock_within_s" in table)
        assert ("mtie" in names) == ("mask" in table)


def test_what_a_run_keeps_is_where_it_is_looked_for(tmp_path: Path):
    folder = tmp_path / KEPT
    folder.mkdir(parents=True)
    (folder / "site.toml").write_text(GOOD)
    found = sets_of_run(tmp_path, "run-1")
    assert [(each.path, each.run_ids) for each in found] == [("evidence/requirements/site.toml", ("run-1",))]
    again = merged([*found, *sets_of_run(tmp_path, "run-2")])
    assert [each.run_ids for each in again] == [("run-1", "run-2")]


def test_a_target_is_asked_what_its_own_runs_kept_and_what_is_named():
    data = GOOD.encode()
    kept = merged([read_set(data, "site.toml")])
    assert [each.id for _file, each in requirements_for(kept, [])] == ["DAQ-031", "DAQ-032"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[requirements]", "[other]", r"need a table \[requirements\]"),
        (
            "[[requirement]]",
            "[[other]]",
            r"need a table \[requirements\] and at least one \[\[requirement\]\]",
        ),
        ('name = "site"', "name = 1", "requirements.name: must be a text"),
        ('id = "DAQ-031"', 'id = ""', r"requirement\[1\].id: must be a text"),
        ('"DAQ-032"', '"DAQ-031"', "requirement.id: 'DAQ-031' stands twice"),
        ("upper_us = 50000", 'upper_us = "50"', r"requirement\[1\].upper_us: must be a whole number"),
        ("allowed_lost = 0", "allowed_lost = true", r"requirement\[1\].allowed_lost: must be a whole number"),
        ("stream = 31", "stream = = 31", "site.toml: "),
    ],
)
def test_a_wrong_file_is_refused(old: str, new: str, said: str):
    assert old in GOOD
    with pytest.raises(RequirementsError, match=said) as caught:
        read_set(GOOD.replace(old, new, 1 if old != "[[requirement]]" else -1).encode(), "site.toml")
    assert str(caught.value).startswith("site.toml: ")
