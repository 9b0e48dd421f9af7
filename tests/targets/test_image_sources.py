# SPDX-License-Identifier: Apache-2.0
"""Sources of the guests' packages are the host's own, completed where a suite is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from hw.errors import CapabilityError
from hw.virtual.apt_sources import Source, guest_sources, read_host_sources

KEY = "/usr/share/keyrings/archive.gpg"
DEB822 = f"""\
# A comment.
Types: deb deb-src
URIs: http://mirror.invalid/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: {KEY}

Types: deb
URIs: http://mirror.invalid/security
Suites: bookworm-security
Components: main
Enabled: no

Types: deb-src
URIs: http://source.invalid/debian
Suites: bookworm
Components: main
"""
ONE_LINE = f"""\
deb [arch=amd64 signed-by={KEY}] http://mirror.invalid/debian bookworm main # comment
# deb http://disabled.invalid/debian bookworm main
deb-src http://source.invalid/debian bookworm main
deb http://other.invalid/tools stable main
"""


def etc(folder: Path, name: str, text: str) -> Path:
    (folder / "sources.list.d").mkdir(exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_deb822_is_read(tmp_path: Path) -> None:
    found = read_host_sources(etc(tmp_path, "sources.list.d/debian.sources", DEB822))
    assert [source.suite for source in found] == ["bookworm", "bookworm-updates"]
    assert found[0] == Source(
        "http://mirror.invalid/debian", "bookworm", ("main", "contrib"), (("Signed-By", KEY),)
    )


def test_one_line_format_is_read(tmp_path: Path) -> None:
    found = read_host_sources(etc(tmp_path, "sources.list", ONE_LINE))
    assert [(source.uri, source.suite) for source in found] == [
        ("http://mirror.invalid/debian", "bookworm"),
        ("http://other.invalid/tools", "stable"),
    ]
    assert found[0].trust == (("Signed-By", KEY),)


def test_embedded_key_survives(tmp_path: Path) -> None:
    key = " -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc=\n -----END PGP PUBLIC KEY BLOCK-----"
    text = f"Types: deb\nURIs: http://m.invalid/\nSuites: bookworm\nComponents: main\nSigned-By:\n{key}\n"
    (source,) = read_host_sources(etc(tmp_path, "sources.list.d/a.sources", text))
    assert key in source.as_deb822()
    (again,) = read_host_sources(etc(tmp_path, "sources.list.d/a.sources", source.as_deb822()))
    assert again == source


def test_unreadable_names_are_ignored(tmp_path: Path) -> None:
    assert read_host_sources(etc(tmp_path, "sources.list.d/old.list.disabled", ONE_LINE)) == ()


def test_missing_suite_is_derived_from_the_mirror_of_the_suite(tmp_path: Path) -> None:
    host = read_host_sources(etc(tmp_path, "sources.list.d/debian.sources", DEB822))
    chosen = guest_sources("bookworm", ("bookworm-backports",), host)
    derived = next(source for source in chosen if source.suite == "bookworm-backports")
    assert (derived.uri, derived.trust) == (host[0].uri, host[0].trust)
    assert {source.components for source in chosen} == {("main",)}


def test_present_suite_is_not_derived() -> None:
    base = Source("http://mirror.invalid/debian", "bookworm", ("main",), ())
    backports = Source("http://backports.invalid/debian", "bookworm-backports", ("main",), ())
    assert guest_sources("bookworm", ("bookworm-backports",), (base, backports)) == (base, backports)


def test_updates_can_be_left_out() -> None:
    base, updates, security = (
        Source("http://mirror.invalid/debian", f"bookworm{which}", ("main",), ())
        for which in ("", "-updates", "-security")
    )
    assert guest_sources("bookworm", (), (base, updates, security)) == (base, updates, security)
    assert guest_sources("bookworm", (), (base, updates, security), updates=False) == (base,)


def test_another_release_is_derived_from_the_mirrors_of_the_own_one() -> None:
    trust = (("Signed-By", KEY),)
    own, security, other = (
        Source(f"http://mirror.invalid/{folder}", suite, ("main", "contrib"), trust)
        for folder, suite in (("debian", "trixie"), ("security", "trixie-security"), ("more", "sid"))
    )
    found = guest_sources("bookworm", ("bookworm-backports",), (other, own, security), own="trixie")
    assert found == tuple(
        Source(f"http://mirror.invalid/{folder}", suite, ("main",), trust)
        for folder, suite in (
            ("debian", "bookworm"),
            ("security", "bookworm-security"),
            ("debian", "bookworm-backports"),
        )
    )


def test_host_without_the_suite_and_its_own_is_told_so() -> None:
    other = Source("http://mirror.invalid/debian", "sid", ("main",), ())
    with pytest.raises(CapabilityError, match="bookworm main"):
        guest_sources("bookworm", (), (other,), own="trixie")
