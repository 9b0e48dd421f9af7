# SPDX-License-Identifier: Apache-2.0
"""Which package of a root a file belongs to, and whether anybody has named that package."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

# In a root's /usr and in no package's list: made by packages' scripts, or by Python of its own modules.
_MADE = (
    "*/__pycache__/*",
    "*/gconv-modules.cache",
    "/usr/lib/locale/*",
    "*/wine/x86_64-windows/*",
    "/usr/share/mime/*",
)
# Top-level folders of what an installation consists of; others have settings, state and the tree itself.
_INSTALLED = ("/usr/", "/opt/", "/boot/")
_MERGED = re.compile(r"^/(bin|sbin|lib|lib32|lib64|libx32)(?=/)")
ANYWAY = "-"
"""In dependencies.txt: used where it is there, and not needed."""

_LIBRARY = re.compile(r"/lib/.*(\.so(\.[0-9a-z.]+)?|-[0-9.]+(-system)?\.so)$")


@dataclass(frozen=True)
class Package:
    """One installed package of a root.

    Attributes:
        name: Without its architecture.
        essential: Whether Debian calls it essential, so that every system has it.
        files: Paths of its files; links count by themselves.
        needs: Names in its Depends and Pre-Depends, of all alternatives.
        provides: Other names by which it is needed.
    """

    name: str
    essential: bool
    files: frozenset[str]
    needs: frozenset[str]
    provides: frozenset[str]


@dataclass(frozen=True)
class Row:
    """One row of a list of packages (hw/host/packages.txt).

    Attributes:
        name: The package.
        use: `bench` or `dev`.
        reason: Why no set-up, image or replay opens anything of it; empty where one does.
    """

    name: str
    use: str
    reason: str


def rows_of(text: str) -> list[Row]:
    """Return the rows of a list of packages."""
    found: list[Row] = []
    for line in text.splitlines():
        columns, _, reason = line.partition("#")
        if columns.strip():
            name, use, *_ = columns.split()
            found.append(Row(name, use, reason.strip()))
    return found


def installed(root: Path) -> dict[str, Package]:
    """Return the packages of a root by name, from dpkg's own files."""
    found: dict[str, Package] = {}
    for stanza in (root / "var/lib/dpkg/status").read_text(encoding="utf-8").split("\n\n"):
        fields = dict(re.findall(r"^([\w-]+): (.*)$", stanza, re.MULTILINE))
        if not fields.get("Status", "").endswith(" installed"):
            continue
        name, architecture = fields["Package"], fields["Architecture"]
        lists = [root / f"var/lib/dpkg/info/{stem}.list" for stem in (name, f"{name}:{architecture}")]
        text = "".join(file.read_text(encoding="utf-8") for file in lists if file.is_file())
        depends = ", ".join(fields.get(key, "") for key in ("Depends", "Pre-Depends"))
        found[name] = Package(
            name,
            fields.get("Essential") == "yes",
            frozenset(merged(line) for line in text.splitlines()),
            _names(depends),
            _names(fields.get("Provides", "")),
        )
    return found


def _names(relations: str) -> frozenset[str]:
    return frozenset(re.findall(r"(?:^|[,|])\s*([a-z0-9][a-z0-9.+-]+)", relations))


def merged(path: str) -> str:
    """Return a path as it is since /bin, /lib and /sbin are links into /usr."""
    return _MERGED.sub(r"/usr/\1", path)


def users(root: Path, files: Iterable[str], packages: dict[str, Package]) -> tuple[dict[str, str], list[str]]:
    """Tell whose the files are.

    Returns:
        One opened file of each package that has one, and the files that belong to nobody.
    """
    owners = {path: package.name for package in packages.values() for path in package.files}
    used: dict[str, str] = {}
    strangers: list[str] = []
    opened = sorted(merged(file) for file in files)
    for path in opened:
        if not path.startswith(_INSTALLED) or any(fnmatchcase(path, pattern) for pattern in _MADE):
            continue
        owner = owners.get(path)
        if owner is None:
            strangers.append(path)
        elif _rank(path) < _rank(used.get(owner, "")):
            used[owner] = path
    # A package of links alone is used where what its link leads to is.
    seen = set(opened)
    for package in packages.values():
        for path in sorted(package.files if package.name not in used else ()):
            link = root / path.lstrip("/")
            if link.is_symlink() and _target(root, link) in seen:
                used[package.name] = path
                break
    return used, strangers


def _rank(path: str) -> tuple[int, int, str]:
    """Programs first, then headers, the rest, libraries; short names first."""
    kinds = ("/bin/", "/sbin/", "/include/")
    kind = next((i for i, kind in enumerate(kinds) if kind in path), 5)
    if not path or _LIBRARY.search(path):
        kind = 9 if not path else 7
    return kind, len(path), path


def _target(root: Path, link: Path) -> str:
    """Return where a link of a root leads to, followed within that root."""
    path = "/" + str(link.relative_to(root))
    for _ in range(20):
        file = root / path.lstrip("/")
        if not file.is_symlink():
            break
        to = str(file.readlink())
        path = to if to.startswith("/") else _plain(f"{path.rpartition('/')[0]}/{to}")
        path = merged(path)
    return path


def _plain(path: str) -> str:
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def closure(names: Iterable[str], packages: dict[str, Package]) -> set[str]:
    """Return the names of all packages that some depend on, themselves included."""
    providers: dict[str, list[str]] = {}
    for package in packages.values():
        for name in package.provides:
            providers.setdefault(name, []).append(package.name)
    found: set[str] = set()
    ahead = list(names)
    while ahead:
        now = ahead.pop()
        if now in found:
            continue
        if now in packages:
            found.add(now)
            ahead += packages[now].needs
        else:
            ahead += providers.pop(now, ())
    return found


def recorded(text: str) -> dict[str, str]:
    """Return the rows of dependencies.txt: a pattern of packages, and the named package that brings them."""
    rows = (line.partition("#")[0].split() for line in text.splitlines())
    return {row[0]: row[1] for row in rows if row}


def by_accident(
    used: dict[str, str], named: Sequence[str], records: dict[str, str], packages: dict[str, Package]
) -> list[str]:
    """Return a line for each package that is used, though nobody has named it.

    A shared library needs no record: whose program it serves has it among its own dependencies.

    Args:
        used: An opened file by package, a program rather than a library.
        named: Packages of the lists, and what one has before.
        records: What is known to come with a named one.
        packages: All of the root.
    """
    essential = closure((package.name for package in packages.values() if package.essential), packages)
    through = {name: closure([name], packages) for name in named}
    lines: list[str] = []
    for name, file in sorted(used.items()):
        brought = sorted(each for each in through if name in through[each])
        expected = {brings for pattern, brings in records.items() if fnmatchcase(name, pattern)}
        library = brought and _LIBRARY.search(file)
        if library or name in named or name in essential or expected & {*brought, ANYWAY}:
            continue
        why = f"comes with {', '.join(brought[:3])}" if brought else "nothing that is named depends on it"
        lines.append(f"{name}: in no list, {file} was opened ({why})")
    return lines
