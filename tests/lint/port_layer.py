# SPDX-License-Identifier: Apache-2.0
"""Check that calls of an operating system stand behind the port layer, from includes and from symbols.

Run as `python -m tests.lint.port_layer BUILD...` on Meson's build directories: prints `file: finding`, and
exits 1 if there is one.

The rule, for C in `traffic-gen/` and `targets/KIND/`, whatever the folder there:

- files named `port.*` or `port_*` are the port layer: they call the system;
- every other file calls functions of C99 (`c99_functions.txt`) and of this project alone;
- in `targets/*/src`, which is for one system each, a program's own file `bw-*.c` that is nothing but calls
  of that system may make them, if its first comment says why: `System program: …`. Whatever a second program
  could use, or a test could check without that system, is in files of its own;
- a plug-in (`*_plugin.c`) stands for code of a vendor.

Includes are checked in the text (`tests.lint.sources` does it), calls by the undefined symbols of objects.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
FUNCTIONS_FILE = Path(__file__).with_name("c99_functions.txt")

PORT_FILE = re.compile(r"(^|/)port(_[a-z0-9_]+)?\.[ch]$")
SYSTEM_PORT_HEADER = re.compile(r"(^|/)port_(linux|win32)[a-z0-9_]*\.h$")
"""Header of the port layer of one system, for the port layer alone."""
CHECKED = re.compile(r"^(traffic-gen/.+|targets/[^/]+/.+)\.[ch]$")
PLUG_IN = re.compile(r"_plugin\.[ch]$")
SYSTEM_PROGRAM_FILE = re.compile(r"^targets/[^/]+/src/bw-[a-z0-9-]+\.c$")
SYSTEM_PROGRAM = re.compile(r"^ \* System program: \S")
FIRST_COMMENT_LINES = 40

HEADERS = frozenset(re.findall(r"^\[(\w+\.h)\]$", FUNCTIONS_FILE.read_text(), re.MULTILINE))
"""Headers of ISO C11 that ask no operating system."""
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')

# What compilers and C libraries put into an object for plain C.
RUNTIME = re.compile(
    r"_GLOBAL_OFFSET_TABLE_|__stack_chk_(fail|guard)|_{2,3}chkstk_ms|__aeabi_\w+|__(atomic|sync)_\w+|__gcov_\w+"
    r"|__(u?div|u?mod|ashl|ashr|lshr|mul|fix\w*|float\w*)[dt]i3?|__popcount[sdt]i2|__errno_location|_errno"
    r"|__assert_fail|_assert|_wassert|__acrt_iob_func|__ctype_(b|tolower|toupper)_loc|__main|_setjmp"
)
# Other names of C99's functions: scanf in C99 form, files beyond 2 GiB, mingw-w64's own, those of a DLL.
RENAMED = re.compile(r"^(?:__imp_)?(?:__isoc(?:99|23)_|__mingw_|__ms_)?_?(\w+?)(?:64)?$")


@dataclass(frozen=True)
class Object:
    """A compiled file.

    Attributes:
        source: Path below the root of the tree.
        undefined: Symbols that it uses.
        defined: Symbols that it defines for others.
    """

    source: PurePosixPath
    undefined: frozenset[str]
    defined: frozenset[str]


def allowed_functions(text: str) -> frozenset[str]:
    """Return the names in `c99_functions.txt`."""
    lines = (line for line in text.splitlines() if not line.startswith(("#", "[")))
    return frozenset(name for line in lines for name in line.split())


def may_call_system(path: PurePosixPath, lines: Iterable[str]) -> bool:
    """Say whether a file of the checked folders may call the operating system."""
    if PORT_FILE.search(str(path)) or PLUG_IN.search(path.name):
        return True
    if not SYSTEM_PROGRAM_FILE.match(str(path)):
        return False
    head = [line for _, line in zip(range(FIRST_COMMENT_LINES), lines, strict=False)]
    return any(SYSTEM_PROGRAM.match(line) for line in head)


def is_checked(path: PurePosixPath) -> bool:
    """Say whether the rule is for a file."""
    return CHECKED.match(str(path)) is not None


def wrong_includes(path: PurePosixPath, lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield line and finding for each header of an operating system that a file must not include."""
    if not is_checked(path) or may_call_system(path, lines):
        return
    for number, line in enumerate(lines, start=1):
        found = INCLUDE.match(line)
        if found is None:
            continue
        system, header = found.group(1) == "<", found.group(2)
        if system and header not in HEADERS:
            yield number, f"<{header}> outside the port layer: neither C99 nor this project's"
        elif not system and SYSTEM_PORT_HEADER.search(header):
            yield number, f'"{header}" is of one system: for the port layer alone'


def wrong_symbols(
    objects: Sequence[Object], functions: frozenset[str], root: Path
) -> Iterator[tuple[PurePosixPath, str]]:
    """Yield source and symbol for each call of an operating system outside the port layer.

    Args:
        objects: Of all builds: what one defines, but a test, all may use.
        functions: C99's functions.
        root: Of the tree; sources are below it.
    """
    own = frozenset[str]().union(*(each.defined for each in objects if each.source.parts[0] != "tests"))
    for each in sorted(objects, key=lambda each: str(each.source)):
        if not is_checked(each.source):
            continue
        if may_call_system(each.source, (root / each.source).read_text(errors="replace").splitlines()):
            continue
        for symbol in sorted(each.undefined - own):
            renamed = RENAMED.match(symbol)
            plain = renamed.group(1) if renamed else symbol
            if symbol in functions or plain in functions or RUNTIME.fullmatch(symbol.removeprefix("__imp_")):
                continue
            yield each.source, symbol


def read_objects(build: Path, root: Path) -> list[Object]:
    """Read the symbols of every object of a Meson build directory, by `nm` of its own compiler's kind.

    Raises:
        FileNotFoundError: An object is missing: build first.
    """
    commands = json.loads((build / "compile_commands.json").read_text())
    objects: list[Object] = []
    for command in commands:
        source = (Path(command["directory"]) / command["file"]).resolve()
        if not source.is_relative_to(root):
            continue
        compiler = Path(command["command"].split()[0]).name
        prefix = compiler.removesuffix("gcc") if compiler.endswith("-gcc") else ""
        listing = _symbols(f"{prefix}nm", build / command["output"])
        undefined = frozenset(name for kind, name in listing if kind in "Uw")
        defined = frozenset(name for kind, name in listing if kind not in "Uw")
        objects.append(Object(PurePosixPath(source.relative_to(root)), undefined, defined))
    return objects


def _symbols(nm: str, file: Path) -> list[tuple[str, str]]:
    """Return kind and name of each global symbol."""
    if not file.exists():
        raise FileNotFoundError(f"{file}: build first")
    done = subprocess.run([nm, "-g", str(file)], check=True, capture_output=True, text=True)
    found = (line.split()[-2:] for line in done.stdout.splitlines() if line.strip())
    return [(words[0], words[1]) for words in found if len(words) == 2]


def main(arguments: list[str]) -> int:
    """Check build directories."""
    functions = allowed_functions(FUNCTIONS_FILE.read_text())
    objects = [each for argument in arguments for each in read_objects(Path(argument), ROOT)]
    checked = {each.source for each in objects if is_checked(each.source)}
    findings = {
        f"{source}: {symbol}: called outside the port layer, and no function of C99"
        for source, symbol in wrong_symbols(objects, functions, ROOT)
    }
    for finding in sorted(findings):
        print(finding)
    print(f"{len(checked)} C files, {len(findings)} findings")
    return 1 if findings or not checked else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
