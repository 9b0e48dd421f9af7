# SPDX-License-Identifier: Apache-2.0
"""The commit of a checkout, whoever owns it, and what names a tree that has none."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from reports.run.provenance import commit_of, source_of

OTHER_USER = 65534


def git(folder: Path, *words: str) -> str:
    """Run git in a folder."""
    argv = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *words]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A source tree of two files."""
    folder = tmp_path / "tree"
    (folder / "traffic-gen").mkdir(parents=True)
    (folder / "traffic-gen" / "version.h").write_text('#define BW_VERSION "1.2.3"\n')
    (folder / "Makefile").write_text("all:\n")
    return folder


@pytest.mark.simulated
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
def test_a_checkout_of_another_user_has_its_commit(tree: Path) -> None:
    git(tree, "init", "-q")
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "x")
    commit = git(tree, "rev-parse", "HEAD")
    for path in (tree, *tree.rglob("*")):
        os.chown(path, OTHER_USER, OTHER_USER, follow_symlinks=False)
    argv = ["git", "-C", str(tree), "rev-parse", "HEAD"]
    plain = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert "dubious ownership" in plain.stderr
    assert commit_of(tree) == commit
    (tree / "Makefile").write_text("all: changed\n")
    assert commit_of(tree) == f"{commit}-dirty"


def test_an_exported_tree_is_named_by_version_and_files(tree: Path) -> None:
    assert commit_of(tree) is None
    named = source_of(tree)
    assert named is not None
    assert named.startswith("1.2.3, files of SHA-256 ")
    for made in ("results/run/run.json", ".build/x", "traffic-gen/__pycache__/x.pyc"):
        (tree / made).parent.mkdir(parents=True)
        (tree / made).write_text("x")
    assert source_of(tree) == named, "what is built or measured does not change it"
    (tree / "traffic-gen" / "results").mkdir()
    (tree / "traffic-gen" / "results" / "a.c").write_text("x")
    moved = source_of(tree)
    assert moved != named
    (tree / "Makefile").write_text("all: changed\n")
    assert source_of(tree) not in (named, moved)


def test_a_folder_that_is_no_tree_of_ours_has_no_name(tmp_path: Path) -> None:
    assert source_of(tmp_path) is None
