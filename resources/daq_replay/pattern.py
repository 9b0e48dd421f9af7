# SPDX-License-Identifier: Apache-2.0
"""Patterns as the native tool reads them: there is one parser and one validation, `bw-traffic check`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hw.errors import BenchError, ConfigError
from hw.tools import local_tool


@dataclass(frozen=True)
class Stream:
    """One stream of a pattern; times in nanoseconds, size in bytes."""

    id: int
    producer: int
    message_type: int
    transport: str
    size_bytes: int
    period_ns: int
    budget_ns: int
    low_latency: bool
    phase_ns: int


@dataclass(frozen=True)
class Pattern:
    """A validated pattern, with its phases."""

    name: str
    source: str
    phase: str
    streams: tuple[Stream, ...]

    @property
    def producers(self) -> tuple[int, ...]:
        """Numbers of the producers, ascending."""
        return tuple(sorted({stream.producer for stream in self.streams}))

    def with_budgets(self, budgets_ns: Mapping[int, int]) -> Pattern:
        """Return the pattern with other budgets: the consumer logs what is later than these, no more.

        Args:
            budgets_ns: By stream; the others keep theirs.
        """
        streams = (
            replace(stream, budget_ns=budgets_ns.get(stream.id, stream.budget_ns)) for stream in self.streams
        )
        return replace(self, streams=tuple(streams))

    def text(self, producers: Sequence[int] = ()) -> str:
        """Return the pattern as a file's text, of these producers only where some are named."""
        parts = [
            "[pattern]",
            'schema = "benchwright.pattern/1"',
            f'name = "{self.name}"',
            f'source = "{self.source}"',
        ]
        for stream in self.streams:
            if producers and stream.producer not in producers:
                continue
            parts += [
                "",
                "[[stream]]",
                f"id = {stream.id}",
                f'transport = "{stream.transport}"',
                f"size_bytes = {stream.size_bytes}",
                f"period_us = {stream.period_ns // 1000}",
                f"budget_us = {stream.budget_ns // 1000}",
                f"low_latency = {'true' if stream.low_latency else 'false'}",
            ]
        return "\n".join(parts) + "\n"


def load_pattern(path: Path, phase: str = "aligned-12") -> Pattern:
    """Validate a pattern file.

    Raises:
        ConfigError: The tool's own message: file, line, stream, field, allowed range.
        BenchError: The tool cannot be run.
    """
    argv = [str(local_tool("bw-traffic")), "check", str(path), "--phase", phase]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode == 2:
        raise ConfigError(done.stderr.strip())
    if done.returncode != 0:
        raise BenchError(f"{' '.join(argv)}: exit code {done.returncode}: {done.stderr.strip()}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return Pattern(
        name=str(answer["name"]),
        source=str(answer["source"]).replace('"', "'"),
        phase=str(answer["phase"]),
        streams=tuple(
            Stream(**{name: item[name] for name in Stream.__dataclass_fields__}) for item in answer["streams"]
        ),
    )
