# SPDX-License-Identifier: Apache-2.0
"""One role of a clock stack on one node: its scripts and configuration brought there, its daemons watched.

The scripts are those of `targets/KIND/clock`; they run without this program, too (docs/clocks.md). How they
get there and are called, `clock.toml` beside them says (resources/clock_sync/kind.py).
"""

from __future__ import annotations

import io
import re
import shlex
import tarfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hw.answers import answers_of, json_line
from hw.errors import BenchError, CapabilityError, MeasurementError
from hw.protocols import CommandResult, Node
from hw.scratch import scratch_folder
from hw.tools import local_tool
from resources.clock_sync.kind import ARCHIVE, load_clock_kind
from resources.tools.fetched import plain_names

VERB_S = 60.0
ARCHIVE_FILE = "clock.tar"
EXIT_MISSING, EXIT_STATE = 3, 4
WORDS_MAX = 300


@dataclass(frozen=True)
class Daemon:
    """A daemon of a running stack, as its node says.

    Attributes:
        exit_code: None while it runs, and when it was killed together with what watched it.
        last_words: The end of its log.
    """

    node: str
    name: str
    running: bool
    exit_code: int | None
    last_words: str

    def death(self) -> str:
        """Return, in words, how it ended."""
        code = self.exit_code
        if code is None:
            how = "is gone"
        elif code > 128:
            how = f"was killed by signal {code - 128}"
        else:
            how = f"ended with exit code {code}"
        return f"{self.name} on {self.node} {how}: {self.last_words[-WORDS_MAX:] or 'no message'}"


class ClockRole:
    """A role, `client` or `server`, on a node that is on."""

    def __init__(self, node: Node, role: str, target_folder: Path) -> None:
        """Describe it; nothing is done yet.

        Args:
            node: Where it runs.
            role: `client` or `server`.
            target_folder: Folder below `targets/` that holds `clock/`.

        Raises:
            CapabilityError: This kind of target has no clock stacks, or cannot play this role.
            ConfigError: Its `clock.toml` is wrong.
        """
        self.node = node
        self._kind = load_clock_kind(target_folder)
        self._command = {"client": self._kind.client, "server": self._kind.server}[role]
        if not self._command:
            raise CapabilityError(f"{self._kind.path.name}: this kind of machine can be no time server")
        self._brought = False

    def start(self, stack: str, files: Mapping[str, str]) -> None:
        """Bring scripts and configuration, put back what an earlier run has left, start the daemons.

        Args:
            stack: Name of the stack.
            files: Configuration: file name → text; files of an earlier one are removed.

        Raises:
            MeasurementError: The node lacks something, or the right to do it; the text says what.
            BenchError: It cannot be reached, or what an earlier run has left cannot be put back.
        """
        self._bring(files)
        self._verb("start", stack)

    def hold(self) -> None:
        """Client: stop listening and keep the frequency. Server: stop serving."""
        self._verb("hold")

    def resume(self) -> None:
        """Client: listen again. Server: serve again."""
        self._verb("resume")

    def stop(self) -> None:
        """End the daemons and put back clock and time services; harmless when nothing runs.

        Raises:
            BenchError: Something could not be put back; the text names it.
        """
        if not self._brought:
            self._bring({})
        self._verb("stop")

    def daemons(self) -> list[Daemon]:
        """Return how the daemons are."""
        fields = ("name", "running", "exit_code", "last_words")
        answers = answers_of(self._verb("status").stdout, "daemon", fields, f"{self.node.name}: clock stack")
        return [
            Daemon(
                self.node.name,
                str(answer["name"]),
                bool(answer["running"]),
                answer["exit_code"],
                str(answer["last_words"]),
            )
            for answer in answers
        ]

    def lines(self, file: str, first: int = 1) -> str:
        """Return the lines of a log from a number on; empty while it does not exist."""
        path = f"{self._kind.folder}/{file}"
        if self._kind.transfer == ARCHIVE:
            return self.node.run(["tail", "-n", f"+{first}", path], check=False).stdout
        with scratch_folder("clock-log") as scratch, suppress(BenchError):
            copy = Path(scratch) / "log"
            self.node.get(path, copy)
            text = copy.read_text(encoding="utf-8", errors="replace")
            return "".join(text.splitlines(keepends=True)[first - 1 :])
        return ""

    def count_lines(self, file: str) -> int:
        """Return how many lines a log has so far."""
        if self._kind.transfer != ARCHIVE:
            return self.lines(file).count("\n")
        path = shlex.quote(f"{self._kind.folder}/{file}")
        done = self.node.run(["sh", "-c", f"wc -l <{path}"], check=False)
        return int(done.stdout) if re.fullmatch(r"\s*[0-9]{1,18}\s*", done.stdout) else 0

    def fetch_logs(self, folder: Path) -> list[Path]:
        """Copy all logs of the run; folders below that of the run become part of the names.

        Returns:
            The copies.
        """
        folder.mkdir(parents=True, exist_ok=True)
        copies: list[Path] = []
        for name in self._logs():
            copy = folder / name.replace("/", "-")
            self.node.get(f"{self._kind.folder}/{name}", copy)
            copies.append(copy)
        return copies

    def _logs(self) -> list[str]:
        """Return logs and configuration of the run, below its folder; names that lead elsewhere are none."""
        run = self._kind.folder
        if self._kind.transfer == ARCHIVE:
            patterns = "*.log *.err *.exit */*.log config/*"
            script = f"cd {run} 2>/dev/null && ls -d {patterns} 2>/dev/null"
            return plain_names(self.node.run(["sh", "-c", script], check=False).stdout.split(), folders=1)
        return [
            f"{part}/{name}"
            for part in ("log", "config")
            for name in plain_names(self.node.files(f"{run}/{part}"))
        ]

    def _bring(self, files: Mapping[str, str]) -> None:
        """Bring scripts and tools, and in the place of an earlier configuration this one."""
        kind, clock = self._kind, self._kind.path / "clock"
        scripts = [file for file in sorted(clock.iterdir()) if file.is_file() and file.suffix != ".toml"]
        scripts += [clock / name for name in kind.scripts_besides]
        scripts += [local_tool(name, kind.machine) for name in kind.tools]
        content = {f"script/{file.name}": file.read_bytes() for file in scripts}
        stacks = [file for file in sorted(clock.glob("*/stack.*")) if file.suffix != ".toml"]
        content |= {f"script/stacks/{file.parent.name}{file.suffix}": file.read_bytes() for file in stacks}
        content |= {f"config/{name}": text.encode() for name, text in files.items()}
        with scratch_folder("clock-stack") as scratch:
            if kind.transfer == ARCHIVE:
                self._bring_archive(content, Path(scratch) / ARCHIVE_FILE)
            else:
                self._bring_files(content, Path(scratch))
        self._brought = True

    def _bring_archive(self, content: Mapping[str, bytes], archive: Path) -> None:
        run = self._kind.folder
        with tarfile.open(archive, "w") as tar:
            for name, data in content.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(data)
                tar.addfile(entry, io.BytesIO(data))
        self.node.put(archive, f"{run}/{ARCHIVE_FILE}")
        unpack = f"tar -xf {ARCHIVE_FILE} && rm {ARCHIVE_FILE}"
        self.node.run(["sh", "-c", f"cd {run} && rm -rf config script && mkdir config && {unpack}"])

    def _bring_files(self, content: Mapping[str, bytes], scratch: Path) -> None:
        for name, data in content.items():
            file = scratch / Path(name).name
            file.write_bytes(data)
            self.node.put(file, f"{self._kind.folder}/{name}")

    def _verb(self, verb: str, *arguments: str) -> CommandResult:
        argv = [*self._command, verb, *arguments]
        done = self.node.run(argv, timeout_s=VERB_S, check=False)
        if done.exit_code == 0:
            return done
        detail = done.stderr.strip() or _wrong_items(done.stdout) or done.stdout.strip()
        text = f"clock of {self.node.name}: {verb}: {detail[-WORDS_MAX:]}"
        if done.exit_code in (EXIT_MISSING, EXIT_STATE):
            raise MeasurementError(text)
        raise BenchError(f"{text} (exit code {done.exit_code})")


def _wrong_items(text: str) -> str:
    """Return what could not be put back."""
    wrong: list[str] = []
    for line in text.split("\n"):
        answer = json_line(line) or {}
        if answer.get("status") == "wrong":
            item, wanted, found, note = (answer.get(key, "") for key in ("item", "wanted", "found", "note"))
            wrong.append(f"{item}: wanted {wanted}, found {found} {note}")
    return "; ".join(wrong)
