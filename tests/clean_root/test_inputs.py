# SPDX-License-Identifier: Apache-2.0
"""What a clean root depends on."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.clean_root import inputs
from tests.clean_root.__main__ import REPOSITORY


def test_every_pattern_fits_a_file() -> None:
    listed = subprocess.run(
        ["git", "-C", str(REPOSITORY), "ls-files"], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    for pattern in inputs.patterns(inputs.LIST.read_text())[0]:
        assert len(inputs.unlisted(listed, pattern)) < len(listed), pattern


@pytest.mark.parametrize(
    "file",
    [
        "Makefile",
        "hw/host/packages.txt",
        "hw/host/requirements.lock",
        "targets/embedded/packages.txt",
        "targets/embedded/cross/armhf.ini",
        "targets/linux-rt/image/recipe.toml",
        "targets/linux/userstack/lwip/patches/series",
        "traffic-gen/meson.build",
    ],
)
def test_what_counts(file: str) -> None:
    counted, _ = inputs.patterns(inputs.LIST.read_text())
    assert inputs.unlisted([file], "\n".join(counted)) == []


def test_the_key_changes_with_what_counts_alone(tmp_path: Path) -> None:
    def commit(file: str, text: str) -> str:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
        for words in (["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
            subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
        return inputs.key(tmp_path, "HEAD")

    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    first = commit("hw/host/packages.txt", "git bench main -\n")
    assert commit("reports/page/render.py", "# other\n") == first
    assert commit("hw/host/packages.txt", "make bench main -\n") != first


def test_a_file_that_no_pattern_has_is_named() -> None:
    text = "# why\nhw/host/*\n- *.c\n"
    assert inputs.unlisted(["hw/host/a/b", "x/y.c", "x/y.sh"], text) == ["x/y.sh"]
