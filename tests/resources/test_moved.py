# SPDX-License-Identifier: Apache-2.0
"""Suites and files of a site that name the old paths of resources and requirements run on, with a warning."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from resources.moved import present

ROOT = Path(__file__).resolve().parents[2]
RESOURCES = sorted(file for file in (ROOT / "resources").glob("*.resource") if file.stem != "lab")


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda file: str(file.stem))
def test_an_old_resource_is_the_new_one_and_says_so(resource: Path, tmp_path: Path) -> None:
    suite = tmp_path / "site.robot"
    suite.write_text(
        f"*** Settings ***\nResource    {resource}\n*** Test Cases ***\nOne\n    Log    ${{BENCH}}\n"
    )
    command = [sys.executable, "-m", "robot", "--pythonpath", ".", "--outputdir", str(tmp_path), "--dryrun"]
    done = subprocess.run([*command, str(suite)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (new,) = (ROOT / "robot").glob(f"*/{resource.name}")
    said = f"resources/{resource.name} is {new.relative_to(ROOT)} now"
    assert said in " ".join(done.stderr.split())


def test_an_old_requirements_file_is_the_new_one(tmp_path: Path) -> None:
    folder = tmp_path / "robot"
    shutil.copytree(ROOT / "robot", folder)
    old = folder / "requirements" / "daq12.toml"
    assert present(old) == folder / "daq_replay" / "requirements" / "daq12.toml"
    assert present(folder / "requirements" / "none.toml") == folder / "requirements" / "none.toml"
    old.parent.mkdir()
    old.write_text("")
    assert present(old) == old, "a site's own"
