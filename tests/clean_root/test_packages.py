# SPDX-License-Identifier: Apache-2.0
"""Whose a file is, and what nobody has named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clean_root import packages, uses
from tests.clean_root.__main__ import DEPENDENCIES, REPOSITORY

STATUS = """\
Package: awk
Essential: yes
Status: install ok installed
Architecture: amd64
Depends: virtual-c

Package: named
Status: install ok installed
Architecture: amd64
Depends: tool-1 (>= 1:2) | other, libx

Package: tool-1
Status: install ok installed
Architecture: amd64

Package: libx
Status: install ok installed
Architecture: amd64
Multi-Arch: same

Package: libc
Status: install ok installed
Architecture: all
Provides: virtual-c (= 1)

Package: gone
Status: deinstall ok config-files
Architecture: all

Package: stray
Status: install ok installed
Architecture: all
"""
FILES = {
    "awk": "/bin/awk",
    "named": "/usr/bin/link",
    "tool-1": "/usr/lib/tool-1/bin/tool",
    "libx:amd64": "/lib/libx.so.1.2",
    "libc": "/usr/share/c",
    "stray": "/usr/bin/stray",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with dpkg's files, and a link of one package to another's program."""
    info = tmp_path / "var/lib/dpkg/info"
    info.mkdir(parents=True)
    (info.parent / "status").write_text(STATUS)
    for name, files in FILES.items():
        (info / f"{name}.list").write_text(f"/.\n/usr\n{files}\n")
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/bin/link").symlink_to("../lib/tool-1/bin/tool")
    return tmp_path


def opened(root: Path, *files: str, named: str = "named", records: str = "") -> list[str]:
    """Return what is used by accident where some files are opened."""
    found = packages.installed(root)
    used, _ = packages.users(root, files, found)
    return packages.by_accident(used, [named], packages.recorded(records), found)


def test_removed_packages_do_not_count(root: Path) -> None:
    assert set(packages.installed(root)) == {"awk", "named", "tool-1", "libx", "libc", "stray"}


def test_essential_named_and_libraries_of_named_are_expected(root: Path) -> None:
    assert opened(root, "/usr/bin/awk", "/usr/share/c", "/usr/lib/libx.so.1.2") == []


def test_a_program_that_comes_along_has_to_be_recorded(root: Path) -> None:
    program = "/usr/lib/tool-1/bin/tool"
    assert opened(root, program) == [f"tool-1: in no list, {program} was opened (comes with named)"]
    assert opened(root, program, records="tool-[0-9]  named  # why") == []
    assert opened(root, program, records="tool-[0-9]  stray") != []
    assert opened(root, program, records="tool-[0-9]  -") == []


def test_what_nothing_brings_is_said(root: Path) -> None:
    (line,) = opened(root, "/bin/stray")
    assert line == "stray: in no list, /usr/bin/stray was opened (nothing that is named depends on it)"


def test_a_package_of_links_is_used_by_what_they_lead_to(root: Path) -> None:
    used, strangers = packages.users(root, ["/usr/lib/tool-1/bin/tool"], packages.installed(root))
    assert used == {"tool-1": "/usr/lib/tool-1/bin/tool", "named": "/usr/bin/link"}
    assert strangers == []


def test_files_of_nobody(root: Path) -> None:
    files = ["/usr/bin/nobody", "/usr/lib/python3/__pycache__/x.pyc", "/etc/passwd", "/srv/tree/Makefile"]
    assert packages.users(root, files, packages.installed(root)) == ({}, ["/usr/bin/nobody"])


def lists() -> list[packages.Row]:
    """Return the rows of the project's own lists."""
    files = [REPOSITORY / "hw/host/packages.txt", *REPOSITORY.glob("targets/*/packages.txt")]
    return [row for file in files for row in packages.rows_of(file.read_text())]


def test_the_document_lists_the_packages_of_a_bench() -> None:
    text = (REPOSITORY / "docs/installing.md").read_text()
    table = text[text.index(uses.HEADING) :].splitlines()[2:]
    rows = [line.split("|")[1].strip(" `") for line in table if line.startswith("|")]
    assert rows == sorted({row.name for row in lists() if row.use == "bench"})
    reasons = {row.name: row.reason for row in lists() if row.reason}
    assert reasons
    assert all(f"| `{name}` | {reason} |" in text for name, reason in reasons.items())


def test_records_name_listed_packages() -> None:
    through = set(packages.recorded(DEPENDENCIES.read_text()).values())
    assert through <= {row.name for row in lists() if row.use == "bench"} | {packages.ANYWAY}
    assert not any(row.reason and row.use == "dev" for row in lists())


def test_a_missing_program_names_its_package(tmp_path: Path) -> None:
    table = (
        "| `qemu-user` | `/usr/bin/qemu-arm` |\n| `git` | `/usr/bin/git` |\n| `x` | `/usr/lib/x.so.1.2` |\n"
    )
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/lib").mkdir()
    (tmp_path / "usr/bin/git").symlink_to("elsewhere")
    (tmp_path / "usr/lib/x.so.1.3").touch()
    assert uses.missing(tmp_path, table) == [
        "qemu-user: /usr/bin/qemu-arm, which the first command uses, is not there"
    ]


def test_a_listed_package_that_nobody_uses(tmp_path: Path) -> None:
    used = tmp_path / "used.json"
    uses.keep(used, {"a": "/usr/bin/a"})
    uses.keep(used, {"b": "/usr/bin/b"})
    rows = packages.rows_of("a bench main -\nb bench main 1.0\nc bench main -  # why\nd dev main -\n")
    assert uses.unused(used, rows) == []
    (line,) = uses.unused(used, [*rows, packages.Row("e", "bench", "")])
    assert line.startswith("e: listed, and no step opens anything of it")
    assert "| `a` | `/usr/bin/a` |" in uses.table(used, rows)
    assert "| `c` | why |" in uses.table(used, rows)


def test_what_a_broken_off_step_has_built_is_built_again(tmp_path: Path) -> None:
    cache, used = tmp_path / "cache", tmp_path / "used.json"

    def built_and_noted() -> tuple[bool, bool]:
        uses.empty_unless_noted(cache, used)
        return (cache / "program").exists(), used.exists()

    def build(end: BaseException | None) -> None:
        with uses.noted(cache):
            cache.mkdir(exist_ok=True)
            (cache / "program").touch()
            if end is not None:
                raise end
            uses.keep(used, {"compiler": "/usr/bin/cc"})

    build(None)
    assert built_and_noted() == (True, True)
    with pytest.raises(KeyboardInterrupt):
        build(KeyboardInterrupt())
    assert built_and_noted() == (False, False)
    build(None)
    assert built_and_noted() == (True, True)
