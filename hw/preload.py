# SPDX-License-Identifier: Apache-2.0
"""Programs with libraries that the loader puts before their own (LD_PRELOAD), on Linux nodes.

The loader ignores a library that it cannot load, and a static program has no loader at all: another program
would be measured than was asked for. So the loader is asked beforehand what it would load, and the running
program's memory is looked at for what it has.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from hw.errors import BenchError, ConfigError
from hw.protocols import READY_S, Job, Node

PRELOAD = "LD_PRELOAD"
_TRACE = "LD_TRACE_LOADED_OBJECTS"
"""Set: the loader lists what it would load instead of running the program; a static one runs."""


def without_preload() -> dict[str, str]:
    """Return this process's environment but for libraries that its user loads into every program.

    They would get between the tools and what is measured.
    """
    return {name: value for name, value in os.environ.items() if name != PRELOAD}


def start_program(
    node: Node,
    argv: Sequence[str],
    stem: Path,
    environment: Mapping[str, str] | None = None,
    preload: Sequence[str] = (),
) -> Job:
    """Start a native tool with variables, and libraries, of its own.

    Args:
        node: It is on.
        argv: The program's path on the node, and its arguments.
        stem: It writes to `stem`.ndjson and `stem`.err.
        environment: Variables besides those that are there.
        preload: Absolute paths on the node of libraries that take effect before the program's own.

    Returns:
        The job. With libraries, its `wait_ready` is an error where they are not in the program, and `wait`
        where nobody has waited for that.

    Raises:
        ConfigError: Libraries in the environment, or for a program that loads none; a path that is none.
        BenchError: A library cannot be loaded there; the text quotes the loader.
    """
    variables = dict(environment or {})
    if PRELOAD in variables:
        raise ConfigError(f"{argv[0]}: {PRELOAD} in its environment: name the library as one to preload")
    if not preload:
        return node.start([*_setting(variables), *argv], stem)
    variables[PRELOAD] = ":".join(preload)
    _require_loadable(node, argv[0], preload)
    job = node.start([*_setting(variables), *argv], stem)
    return _PreloadedJob(job, node, Path(argv[0]).name, preload)


def _setting(variables: Mapping[str, str]) -> list[str]:
    return ["env", *(f"{name}={value}" for name, value in variables.items())] if variables else []


def _require_loadable(node: Node, program: str, libraries: Sequence[str]) -> None:
    for library in libraries:
        if not library.startswith("/") or set(library) & set(": "):
            raise ConfigError(
                f"{node.name}: {library!r}: must be an absolute path without colon or space to be preloaded"
            )
    name = Path(program).name
    asked = ["env", f"{PRELOAD}={':'.join(libraries)}", f"{_TRACE}=1", program, "--version"]
    done = node.run(asked, check=False)
    listed = {word for line in done.stdout.splitlines() for word in line.split()[:1]}
    for library in libraries:
        if done.exit_code == 0 and library in listed:
            continue
        if done.stderr.strip():
            raise BenchError(
                f"{node.name}: {name} cannot be started with {library} loaded: {done.stderr.strip()[-500:]}"
            )
        raise ConfigError(
            f"{node.name}: {name} is linked statically, or its loader takes no libraries from who starts it:"
            f" it would run without {library}; start the dynamic build"
        )


class _PreloadedJob:
    """A native tool that is not ready, and has no exit code, before its libraries are seen in it."""

    def __init__(self, job: Job, node: Node, program: str, libraries: Sequence[str]) -> None:
        self.name = f"{program} on {node.name}"
        self._job = job
        self._node = node
        self._libraries = libraries
        self._are_seen = False

    def process_id(self) -> int:
        return self._job.process_id()

    def wait_ready(self, timeout_s: float = READY_S) -> None:
        self._job.wait_ready(timeout_s)
        maps = self._node.run(["cat", f"/proc/{self.process_id()}/maps"], check=False).stdout
        if not maps:
            raise BenchError(f"{self.name}: ended before it could be seen which libraries it had loaded")
        loaded = {line.split(maxsplit=5)[-1] for line in maps.splitlines()}
        # The kernel says a file's own name, not that of a link to it.
        files = self._node.run(["readlink", "-f", *self._libraries]).stdout.splitlines()
        for library, file in zip(self._libraries, files, strict=True):
            if file not in loaded:
                raise BenchError(
                    f"{self.name}: runs without {library}: what it measures is no measurement of it"
                )
        self._are_seen = True

    def wait(self, timeout_s: float) -> int:
        code = self._job.wait(timeout_s)
        if not self._are_seen:
            raise BenchError(f"{self.name}: ended, and nobody has seen {', '.join(self._libraries)} in it")
        return code

    def stop(self) -> None:
        self._job.stop()

    def fetch(self) -> Path:
        return self._job.fetch()
