# SPDX-License-Identifier: Apache-2.0
"""What has changed in a finalised run folder is found; each file and its bytes: dossier/test_verify.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.__main__ import main
from reports.errors import RunFolderError
from reports.run.folder import RunFolder
from reports.run.integrity import SUMS, changed_files
from tests.reports.sample_run import make_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    run = make_run(tmp_path_factory.mktemp("results"))
    run.finalise()
    return run


def is_found(folder: Path) -> bool:
    """Return whether `verify` finds a change, by its exit code and by the function behind it."""
    try:
        found = bool(changed_files(folder))
    except RunFolderError:
        found = True
    assert (main(["verify", str(folder)]) != 0) == found
    return found


def test_an_untouched_run_verifies(run: RunFolder):
    assert not is_found(run.path)


def test_every_byte_of_the_sums_matters(run: RunFolder):
    path = run.path / SUMS
    before = path.read_bytes()
    for place in range(len(before)):
        damaged = bytearray(before)
        damaged[place] ^= 0x20  # changes the case of letters, too
        path.write_bytes(damaged)
        try:
            found = bool(changed_files(run.path))
        except RunFolderError:
            found = True
        assert found, place
    path.write_bytes(before)


def test_added_removed_and_appended_bytes_are_found(run: RunFolder):
    added = run.path / "evidence" / "added"
    added.touch()
    assert changed_files(run.path) == ["evidence/added: not part of the run when it was finalised"]
    added.unlink()
    manifest = run.path / "run.json"
    before = manifest.read_bytes()
    manifest.unlink()
    assert changed_files(run.path) == ["run.json: missing"]
    manifest.write_bytes(before + b"\n")
    assert changed_files(run.path) == ["run.json: changed"]
    manifest.write_bytes(before)
    link = run.path / "evidence" / "link"
    link.symlink_to(manifest)
    assert is_found(run.path)
    link.unlink()
    assert not is_found(run.path)


def test_a_run_without_sums_is_not_verified(tmp_path: Path):
    run = make_run(tmp_path)
    assert main(["verify", str(run.path)]) == 2
