# SPDX-License-Identifier: Apache-2.0
"""The clock stacks of a kind of target, and how they are put on: `targets/KIND/clock/clock.toml`.

    schema = "benchwright.clock_kind/1"
    folder = "/run/benchwright/clock"          # on the target: scripts, configuration, logs
    client = "sh /run/…/script/client.sh"      # what is called there, in words as a shell takes them
    server = "sh /run/…/script/server.sh"      # the same on a time server; left out: it can be none
    transfer = "archive"                       # or "files": without `tar` and `sh` there, one by one
    scripts_besides = "../provision/json.sh"   # files that go to the scripts, too; left out: none
    tools = "bw-provision bw-job"              # native tools that go to the scripts; left out: none
    machine = "x86_64-windows"                 # that they are built for

The stacks themselves are the folders beside it that have a `stack.toml` (resources/clock_sync/settings.py):
what a program of this machine knows of each, and what it needs. What starts, holds and resumes one is
`stack.sh` or `stack.cmd` there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hw.errors import CapabilityError
from hw.fields import Fields
from hw.protocols import Node
from hw.toml_file import read_toml
from resources.clock_sync.settings import STACKS, StackSpec, load_stack, stack_names

SCHEMA = "benchwright.clock_kind/1"
KIND_FILE = "clock/clock.toml"
ARCHIVE, FILES = "archive", "files"
JOB_LOG = "log/out"
"""Of `bw-job`, where targets have no shell that could watch a daemon."""


@dataclass(frozen=True)
class ClockKind:
    """What `clock.toml` of a kind says; `path` is its folder below `targets/`."""

    path: Path
    stacks: tuple[str, ...]
    folder: str
    client: tuple[str, ...]
    server: tuple[str, ...]
    transfer: str
    scripts_besides: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    machine: str = ""

    @property
    def scripts(self) -> str:
        """Return the folder of the scripts on the target."""
        return f"{self.folder}/script"

    def log_file(self, name: str) -> str:
        """Return where a daemon's log is, below the folder: what is started as a job writes to the job's."""
        return name if self.transfer == ARCHIVE else JOB_LOG

    def stack(self, name: str, simulated: bool) -> StackSpec:
        """Return what is known of a stack on a virtual bench, or on a real one; raises ConfigError."""
        return load_stack(name, simulated, self.path / STACKS)

    def require_offered(self, stack: str, node: Node | None = None) -> None:
        """Check that targets of this kind, and this machine, can have a stack.

        Args:
            stack: Its name.
            node: Where it is to run; None: the kind alone is asked.

        Raises:
            CapabilityError: The kind does not offer it, or the machine lacks what it needs.
        """
        if stack not in self.stacks:
            raise CapabilityError(
                f"targets/{self.path.name}/{STACKS}: this kind of target has no clock stack {stack!r};"
                f" there are: {', '.join(self.stacks)}"
            )
        need = self.stack(stack, simulated=False).machine_needs
        if need is not None and node is not None and node.run(need.command, check=False).exit_code != 0:
            raise CapabilityError(f"clock stack {stack}: {node.name}: {need.without}")


def load_clock_kind(folder: Path) -> ClockKind:
    """Read which clock stacks a kind of target has.

    Args:
        folder: `targets/KIND`.

    Raises:
        CapabilityError: It has none.
        ConfigError: The file is wrong; names it, key and what is allowed.
    """
    path = folder / KIND_FILE
    if not path.exists():
        raise CapabilityError(f"no {path}: this kind of target has no clock stacks")
    table = Fields(read_toml(path), str(path), "")
    table.text("schema", choices=(SCHEMA,))
    kind = ClockKind(
        path=folder,
        stacks=stack_names(folder / STACKS),
        folder=table.text("folder"),
        client=table.words("client"),
        server=table.words("server", ""),
        transfer=table.text("transfer", choices=(ARCHIVE, FILES)),
        scripts_besides=table.words("scripts_besides", ""),
        tools=table.words("tools", ""),
        machine=table.text("machine", ""),
    )
    table.finish()
    return kind
