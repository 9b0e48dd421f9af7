# SPDX-License-Identifier: Apache-2.0
"""Set-up: the backports entry that it derives, what it says when something is missing, and its second run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ONE_LINE = """# comment
deb-src http://mirror.example/debian bookworm main
deb [arch=amd64 signed-by=/usr/share/keyrings/k.gpg] http://mirror.example/debian bookworm main contrib
"""

DEB822 = """Types: deb
URIs: http://mirror.example/security
Suites: bookworm-security
Components: main

Types: deb deb-src
# a snapshot
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mDMEY865UxYJKwYBBAHaRw8BAQdAd7Z0srwuhlB6JKFkcf4HU4SSS
 -----END PGP PUBLIC KEY BLOCK-----
"""


def bash(repository: Path, script: str, *arguments: str) -> str:
    """Run a piece of bash with the set-up's functions at hand; return its output."""
    head = "set -euo pipefail; . hw/host/progress.sh; . hw/host/packages.sh; "
    done = subprocess.run(
        ["bash", "-c", head + script, "bash", *arguments],
        cwd=repository,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def test_backports_from_a_one_line_source(repository: Path, tmp_path: Path) -> None:
    source = tmp_path / "sources.list"
    source.write_text(ONE_LINE)
    entry = bash(repository, 'backports_entry bookworm bookworm-backports "$1"', f"{source}:3")
    options = "[arch=amd64 signed-by=/usr/share/keyrings/k.gpg]"
    assert entry.split() == f"deb {options} http://mirror.example/debian bookworm-backports main".split()


def test_backports_from_a_deb822_source(repository: Path, tmp_path: Path) -> None:
    source = tmp_path / "debian.sources"
    source.write_text(DEB822)
    entry = bash(repository, 'backports_entry bookworm bookworm-backports "$1"', f"{source}:6")
    assert entry.splitlines() == [
        "Types: deb",
        "URIs: http://mirror.example/debian",
        "Suites: bookworm-backports",
        "Components: main",
        *DEB822.splitlines()[10:],
    ]


def test_backports_from_a_source_without_the_suite(repository: Path, tmp_path: Path) -> None:
    source = tmp_path / "other.sources"
    source.write_text(DEB822.replace("bookworm bookworm-updates", "bookworm-updates"))
    assert bash(repository, 'backports_entry bookworm bookworm-backports "$1"', f"{source}:6") == ""


@pytest.fixture
def set_up_copy(repository: Path, tmp_path: Path) -> Path:
    """A copy of the set-up scripts that an ordinary user may run."""
    shutil.copytree(repository / "hw" / "host", tmp_path / "tree" / "hw" / "host")
    for path in (tmp_path, *tmp_path.parents[:2]):
        path.chmod(0o755)
    (tmp_path / "tree").chmod(0o777)
    return tmp_path / "tree"


@pytest.mark.simulated
def test_without_root_says_what_is_missing(set_up_copy: Path) -> None:
    listing = set_up_copy / "hw" / "host" / "packages.txt"
    listing.write_text(
        listing.read_text()
        + "benchwright-absent  bench  main       -\n"
        + "dpkg                bench  backports  99:1\n"
        + "benchwright-tests   dev    main       -\n"
    )
    done = subprocess.run(
        ["setpriv", "--reuid=65534", "--clear-groups", "hw/host/setup.sh"],
        cwd=set_up_copy,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 3
    assert "  benchwright-absent\n" in done.stderr
    assert "  dpkg  (from backports)\n" in done.stderr
    assert "benchwright-tests" not in done.stderr
    assert "as root: hw/host/setup.sh" in done.stderr


@pytest.mark.simulated
def test_without_a_python_says_which_is_needed(set_up_copy: Path) -> None:
    done = subprocess.run(
        [
            "setpriv",
            "--reuid=65534",
            "--clear-groups",
            "env",
            "BENCHWRIGHT_PYTHON=/bin/false",
            "hw/host/setup.sh",
        ],
        cwd=set_up_copy,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 3
    assert "/bin/false is not Python 3.11" in done.stderr


def test_refuses_unknown_arguments(repository: Path) -> None:
    done = subprocess.run([str(repository / "hw/host/setup.sh"), "--fast"], capture_output=True, text=True)
    assert done.returncode == 2
    assert '"--fast"' in done.stderr


@pytest.mark.parametrize("name", ["uv.lock", "requirements.lock", "requirements-dev.lock"])
def test_locks_have_hashes_and_no_addresses(repository: Path, name: str) -> None:
    text = (repository / "hw" / "host" / name).read_text()
    assert "://" not in text
    assert "--find-links" not in text
    assert "--index" not in text
    requirements = text.replace("\\\n", " ").splitlines()
    pinned = [line for line in requirements if line and not line.lstrip().startswith("#")]
    assert pinned
    assert all("==" in line and "--hash=sha256:" in line for line in pinned)


def test_development_lock_holds_the_other_one(repository: Path) -> None:
    def pins(name: str) -> set[str]:
        lines = (repository / "hw" / "host" / name).read_text().splitlines()
        return {line.split()[0] for line in lines if "==" in line and not line.startswith("#")}

    assert pins("requirements.lock") < pins("requirements-dev.lock")
