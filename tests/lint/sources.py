# SPDX-License-Identifier: Apache-2.0
"""Check the project's own rules of source text.

Run as `python -m tests.lint.sources`: prints `file:line: finding`, exits 1 if there is one.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tests.lint.port_layer import PORT_FILE, wrong_includes

SPDX_LINE = "SPDX-License-Identifier: Apache-2.0"
SPDX_WITHIN_LINES = 3

# Formats without comments, and files whose text is given from outside.
SPDX_EXEMPT_SUFFIXES = frozenset(
    {".json", ".ndjson", ".jsonl", ".svg", ".png", ".pdf", ".csv", ".pcap", ".bin", ".xml", ".golden"}
)
SPDX_EXEMPT_NAMES = frozenset({"LICENSE", "go.sum"})
SPDX_EXEMPT_FOLDERS = frozenset({"corpus", "golden", "seeds"})

OS_CONDITION = re.compile(
    r"^\s*#\s*(if|ifdef|ifndef|elif)\b.*\b("
    r"_WIN32|_WIN64|WIN32|__MINGW32__|__MINGW64__|__CYGWIN__|_MSC_VER|"
    r"__linux__|__linux|linux|__gnu_linux__|__unix__|__unix|__APPLE__|__FreeBSD__)\b"
)

# Instants by their last word, with any prefix. Not functions: their clock may be an argument.
INSTANT_WITHOUT_SCALE = re.compile(
    r"\b((?:[a-z0-9]+_)*(?:now|next|start|end|until|deadline|at|begin|time|due|since)_ns)\b(?!\s*\()"
)
C_TEXT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
CLOCK_IS_ARGUMENT = frozenset(
    {
        "traffic-gen/port/port.h",
        "traffic-gen/port/linux/port_linux.c",
        "traffic-gen/port/windows/port_win32.c",
    }
)
"""Files whose functions take an instant of whichever clock is their argument (port_clock_sleep_until_ns)."""

# Spelt in pieces, so that this file does not find itself.
FORBIDDEN = {
    "a home directory": re.compile(
        r"(?<![\w.$}~-])/(home|Users)/[a-z][\w.-]*" + r"|(?<![\w.])/" + r"root/\w"
    ),
    "a folder of one machine": re.compile(r"(?<![\w.$}~-])/" + r"work/"),
    "the host of a package registry": re.compile(
        r"\b("
        + "|".join(
            (
                r"pypi\." + "org",
                "files.python" + "hosted",
                r"registry\." + "npmjs",
                r"proxy\.golang\." + "org",
                r"crates\." + "io",
                r"repo1?\.maven\." + "org",
                r"deb\.debian\." + "org",
                r"snapshot\.debian\." + "org",
            )
        )
        + r")\b"
    ),
}

# Words that are none of the field's, spelt in pieces likewise, and what is written instead.
WORDS = {
    re.compile(r"\bke(ep|eps|pt|eping) " + r"clear of\b", re.IGNORECASE): "guard band",
    re.compile(r"\basked and not " + r"measured\b", re.IGNORECASE): "not tested, untested",
    re.compile(r"\bm" + r"end(s|ed|ing)?\b", re.IGNORECASE): "fix, repair",
    re.compile(r"\bst(and|ands|ood|anding)[ -]?" + r"still\b", re.IGNORECASE): "stall, stop",
    re.compile(r"\bgrave" + r"(st|r)\b", re.IGNORECASE): "worst, worse",
}

SHORT_S = 5.0
TIME_OUT = re.compile(
    r"(?:\.(?:wait|settimeout|join)\(|\b(?:timeout|timeout_s)=)(\d+(?:\.\d*)?)\b(?![^#\n]*#)"
)


@dataclass(frozen=True)
class Finding:
    """One breach of a rule: where it is and what it is. Lines count from 1."""

    path: PurePosixPath
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


def spdx_missing(path: PurePosixPath, lines: list[str]) -> Iterator[Finding]:
    """Report a file that does not name its licence in its first lines."""
    if path.suffix in SPDX_EXEMPT_SUFFIXES or path.name in SPDX_EXEMPT_NAMES:
        return
    if SPDX_EXEMPT_FOLDERS.intersection(path.parts) or not lines:
        return
    if not any(SPDX_LINE in line for line in lines[:SPDX_WITHIN_LINES]):
        yield Finding(path, 1, f'no "{SPDX_LINE}" in the first {SPDX_WITHIN_LINES} lines')


def os_condition(path: PurePosixPath, lines: list[str]) -> Iterator[Finding]:
    """Report C code outside the port layer that asks for the operating system."""
    if path.suffix not in {".c", ".h"} or PORT_FILE.search(str(path)):
        return
    for number, line in enumerate(lines, start=1):
        if OS_CONDITION.match(line):
            yield Finding(
                path, number, "operating system asked for outside the port layer (port.h, port_*.c)"
            )


def os_include(path: PurePosixPath, lines: list[str]) -> Iterator[Finding]:
    """Report C code outside the port layer that includes a header of an operating system."""
    for number, text in wrong_includes(path, lines):
        yield Finding(path, number, text)


def forbidden_text(path: PurePosixPath, lines: list[str]) -> Iterator[Finding]:
    """Report text that is true of one machine or one site only."""
    for number, line in enumerate(lines, start=1):
        for what, pattern in FORBIDDEN.items():
            if match := pattern.search(line):
                yield Finding(path, number, f'{what}: "{match.group(0)}"')


def wrong_word(path: PurePosixPath, lines: list[str]) -> Iterator[Finding]:
    """Report a word for which the field has another."""
    for number, line in enumerate(lines, start=1):
        for pattern, instead in WORDS.items():
            if match := pattern.search(line):
                yield Finding(path, number, f'"{match.group(0)}": write {instead}')


def instant_scale(path: PurePosixPath, lines: list[str]) -> Iterator[Finding]:
    """Report C code in which an instant does not name its time scale: `now_ns` for `now_tai_ns`."""
    if path.suffix not in {".c", ".h"} or str(path) in CLOCK_IS_ARGUMENT:
        return
    for number, line in enumerate(_without_text("\n".join(lines)).split("\n"), start=1):
        for name in INSTANT_WITHOUT_SCALE.findall(line):
            yield Finding(
                path,
                number,
                f'"{name}": an instant names its time scale (_tai_ns, _monotonic_ns, _realtime_ns …)',
            )


def short_time_out(path: PurePosixPath, lines: list[str]) -> Iterator[Finding]:
    """Report a time-out of a test that a busy machine exceeds, unless its line says why it may."""
    if path.suffix != ".py" or path.parts[:1] != ("tests",):
        return
    for number, line in enumerate(lines, start=1):
        for found in TIME_OUT.findall(line):
            if float(found) < SHORT_S:
                yield Finding(
                    path,
                    number,
                    f"time-out of {found} s: HANG_S of tests.patience for what has to come;"
                    " STALL_S, or a comment here, for what must not",
                )


def _without_text(code: str) -> str:
    """Blank comments and string literals of C; lines stay where they are."""
    return C_TEXT.sub(lambda found: "\n" * found.group(0).count("\n") or " ", code)


RULES: tuple[Callable[[PurePosixPath, list[str]], Iterator[Finding]], ...] = (
    spdx_missing,
    os_condition,
    os_include,
    instant_scale,
    forbidden_text,
    wrong_word,
    short_time_out,
)


def check(root: Path, paths: Iterable[PurePosixPath]) -> list[Finding]:
    """Apply every rule to the text files among `paths`, which are relative to `root`."""
    findings: list[Finding] = []
    for path in paths:
        file = root / path
        if file.is_symlink() or not file.is_file():
            continue
        content = file.read_bytes()
        if b"\0" in content:
            continue
        lines = content.decode("utf-8", errors="replace").splitlines()
        for rule in RULES:
            findings.extend(rule(path, lines))
    return findings


def source_paths(root: Path) -> list[PurePosixPath]:
    """List the files that belong to the source tree: tracked, or new and not ignored."""
    listing = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
    ).stdout.decode()
    return [PurePosixPath(name) for name in sorted(set(listing.split("\0"))) if name]


def main() -> int:
    """Check the source tree that this file is in."""
    root = Path(__file__).resolve().parents[2]
    paths = source_paths(root)
    findings = check(root, paths)
    for finding in findings:
        print(finding)
    print(f"{len(paths)} files, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
