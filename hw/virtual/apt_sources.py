# SPDX-License-Identifier: Apache-2.0
"""Derive the package sources of a guest from the host's own: same mirrors, same keys, other suites."""

from __future__ import annotations

import platform
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from hw.errors import CapabilityError

HOST_ETC = Path("/etc/apt")
_ONE_LINE = re.compile(
    r"^deb\s+(?:\[(?P<options>[^\]]*)\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)\s+(?P<components>.+)$"
)
# Options that say how a mirror is trusted; they go along with the mirror. Others concern the host only.
_KEPT_OPTIONS = {"signed-by": "Signed-By", "trusted": "Trusted"}


@dataclass(frozen=True)
class Source:
    """One mirror with one suite.

    Attributes:
        uri: Root of the archive.
        suite: Distribution below it, such as `bookworm-backports`.
        components: Sections, such as `main`.
        trust: Pairs of deb822 field and value that say how the archive is verified.
    """

    uri: str
    suite: str
    components: tuple[str, ...]
    trust: tuple[tuple[str, str], ...]

    def as_deb822(self) -> str:
        """Return the source as one deb822 stanza (sources.list(5))."""
        lines = ["Types: deb", f"URIs: {self.uri}", f"Suites: {self.suite}"]
        lines.append(f"Components: {' '.join(self.components)}")
        lines += [f"{field}: {value}" for field, value in self.trust]
        return "\n".join(lines) + "\n"


def read_host_sources(etc: Path = HOST_ETC) -> tuple[Source, ...]:
    """Return every enabled binary source of the host, both file formats, in the order of apt.

    Args:
        etc: Folder that holds `sources.list` and `sources.list.d`.
    """
    files = [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*"))]
    found: list[Source] = []
    for file in files:
        if not file.is_file():
            continue
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".sources":
            found += _parse_deb822(text)
        elif file.suffix == ".list":
            found += _parse_one_line(text)
    return tuple(found)


def guest_sources(
    suite: str,
    extra_suites: tuple[str, ...],
    sources: tuple[Source, ...],
    updates: bool = True,
    own: str = "",
) -> tuple[Source, ...]:
    """Choose and complete the sources of a guest.

    Sources of `suite`, its updates and its security suite are taken as they are. Where the host has none,
    they are derived from those of the host's own release: its mirrors and keys have it, too. An extra suite
    that the host has not enabled is derived from the mirror that carries `suite`: Debian keeps it there.

    Args:
        suite: Debian's code name, such as `bookworm`.
        extra_suites: Further suites that must be there, such as `bookworm-backports`.
        sources: The host's sources.
        updates: Whether the suite's updates and security updates are taken, too.
        own: The host's release; by default as os-release says.

    Raises:
        CapabilityError: The host has no source for `suite`, nor one of its own release.
    """
    if not any(source.suite == suite and "main" in source.components for source in sources):
        sources = _of_another_release(suite, own or _own_release(), sources)
    wanted = (suite, *((f"{suite}-updates", f"{suite}-security") if updates else ()), *extra_suites)
    chosen = [source for source in sources if source.suite in wanted and "main" in source.components]
    base = next((source for source in chosen if source.suite == suite), None)
    if base is None:
        raise CapabilityError(
            f"no apt source of this machine carries {suite} main (read {HOST_ETC}/sources.list and "
            f"sources.list.d), and none its own release, from which it would be derived: add one"
        )
    present = {source.suite for source in chosen}
    missing = [extra for extra in extra_suites if extra not in present]
    derived = [Source(base.uri, extra, ("main",), base.trust) for extra in missing]
    only_main = [Source(source.uri, source.suite, ("main",), source.trust) for source in chosen]
    return tuple(dict.fromkeys([*only_main, *derived]))


def _own_release() -> str:
    try:
        return platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    except OSError:
        return ""


def _of_another_release(suite: str, own: str, sources: tuple[Source, ...]) -> tuple[Source, ...]:
    """Return the sources of the host's own release with the name of another release in its place."""
    pockets = {own: suite} | {f"{own}-{name}": f"{suite}-{name}" for name in ("updates", "security")}
    return tuple(
        Source(source.uri, pockets[source.suite], source.components, source.trust)
        for source in sources
        if own and source.suite in pockets
    )


def _parse_deb822(text: str) -> list[Source]:
    found: list[Source] = []
    for fields in _stanzas(text):
        enabled = fields.get("enabled", "yes").lower() not in ("no", "false")
        if not enabled or "deb" not in fields.get("types", "").split():
            continue
        trust = tuple((name, fields[key]) for key, name in _KEPT_OPTIONS.items() if key in fields)
        found += [
            Source(uri, suite, tuple(fields.get("components", "").split()), trust)
            for uri in fields.get("uris", "").split()
            for suite in fields.get("suites", "").split()
        ]
    return found


def _stanzas(text: str) -> list[dict[str, str]]:
    """Split deb822 text into stanzas of lower-case field names; continuation lines (keys) are kept."""
    stanzas: list[dict[str, str]] = [{}]
    last = ""
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        if not line.strip():
            stanzas.append({})
        elif line[0] in " \t":
            if last in stanzas[-1]:
                stanzas[-1][last] += "\n" + line
        else:
            name, _, value = line.partition(":")
            last = name.strip().lower()
            stanzas[-1][last] = value.strip()
    return [stanza for stanza in stanzas if stanza]


def _parse_one_line(text: str) -> list[Source]:
    found: list[Source] = []
    for line in text.splitlines():
        match = _ONE_LINE.match(line.split("#", 1)[0].strip())
        if match is None:
            continue
        options: dict[str, str] = {}
        for option in shlex.split(match["options"] or ""):
            name, _, value = option.partition("=")
            options[name.lower()] = value
        trust = tuple((name, options[key]) for key, name in _KEPT_OPTIONS.items() if key in options)
        found.append(Source(match["uri"], match["suite"], tuple(match["components"].split()), trust))
    return found
