# SPDX-License-Identifier: Apache-2.0
"""A node whose root is a folder of this machine, and a stack that is put on it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hw.bench import load_bench
from hw.protocols import CommandResult
from resources.network_stack import NetworkStack
from resources.network_stack_ends import network_stack_on

ROOT = Path(__file__).resolve().parents[3]
TARGETS = ROOT / "targets"
SPEC = load_bench(ROOT / "hw" / "benches" / "virtual.yaml")
DAQ12 = ROOT / "traffic-gen" / "patterns" / "daq12.toml"


# A link setting, changed on the machine and given back through a journal that is written before.
SCRIPT = """\
set -eu
here=$(dirname "$0")
case $3 in
restore) [ ! -e "$here/undo" ] || { cp "$here/undo" "$here/../link"; rm "$here/undo"; } ;;
apply)
    [ "$2" = test0 ] || { echo "no queue on $2" >&2; exit 3; }
    [ ! -e "$here/broken" ] || { echo "it broke" >&2; exit 1; }
    cp "$here/../link" "$here/undo"
    echo busy-polling >"$here/../link"
    echo '{"type":"stack","stack":"user"}' ;;
esac
"""


@dataclass
class Machine:
    """A node whose root is a folder of this machine."""

    root: Path
    name: str = "linux-rt"
    clock: str = "linux-rt"
    priority: int = 50
    powered: bool = True
    started: list[list[str]] = field(default_factory=list[list[str]])

    @property
    def link(self) -> str:
        """Return the setting that a stack changes."""
        return (self.root / "link").read_text().strip()

    def put(self, local: Path, remote: str) -> None:
        """Copy a file to it."""
        place = self.root / remote.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(local, place)

    def run(self, argv: Sequence[str], timeout_s: float = 30.0, check: bool = True) -> CommandResult:
        """Run a command, with absolute paths below its root."""
        assert not check
        here = [str(self.root / word.lstrip("/")) if word.startswith("/") else word for word in argv]
        done = subprocess.run(here, capture_output=True, text=True, check=False, timeout=timeout_s)
        return CommandResult(tuple(argv), done.returncode, done.stdout, done.stderr)

    def start(self, argv: Sequence[str], stem: Path) -> Any:
        """Take note of what is started."""
        assert stem.name
        self.started.append([*argv])
        return None

    def get(self, remote: str, local: Path) -> None:
        """Copy a file from it."""
        shutil.copy(self.root / remote.lstrip("/"), local)

    def files(self, folder: str) -> list[str]:
        """Return the names of a folder."""
        return sorted(each.name for each in (self.root / folder.lstrip("/")).iterdir())

    def bring(self, file: Path) -> str:
        """Return where a file would be."""
        return f"/brought/{file.name}"

    def fresh_folder(self, name: str) -> str:
        """Return where a folder would be."""
        return f"/fresh/{name}"


def stack_on(
    stack: NetworkStack, machine: Machine, interface: str, folder: Path
) -> AbstractContextManager[None]:
    bench: Any = SimpleNamespace(node={machine.name: machine}.__getitem__)
    return network_stack_on(stack, bench, machine.name, {machine.name: interface}, folder)


PROOF_TOOL = '[proof]\ntool = "asked"\narguments = ""\n'
PROOF = f'{PROOF_TOOL}delivered = "frames.delivered"\n'
IN_BYTES = 'delivered_bytes = "frames.bytes_in"\n'
NETSTAT = "TcpExt: A\nTcpExt: 1\nIpExt: InNoRoutes InOctets OutOctets\nIpExt: 0 50 60\n"
