# SPDX-License-Identifier: Apache-2.0
"""What a machine's serial console says about its boot: ready, panicked, hung, at a wrong prompt, never begun.

Bytes and instants go in, a finding comes out; nothing here knows how console or power are reached.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

PROMPTS = {
    "a bootloader": re.compile(r"^(=>|U-Boot>|[\w-]*barebox\S*:/|grub>|grub rescue>|RedBoot>|BIOS>)\s*$"),
    "an initramfs": re.compile(r"^\(initramfs\)\s*$"),
    "a login": re.compile(r"^\S.* login:\s*$"),
    "a shell": re.compile(r"^(\S.*)?[#$%]\s$"),
}
"""Of whom it is → unfinished last line of the console."""
_PANIC = re.compile(r"Kernel panic - not syncing: ([^\r\n]*)")
_FAILED = re.compile(r"benchwright: boot failed: ([^\r\n]*)[\r\n]")
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_UNREADABLE_PART = 0.3
_UNREADABLE_LEAST = 40
_QUOTED = 120


class BootState(StrEnum):
    """How a boot has gone, in the words that an error begins with."""

    READY = "is ready"
    PANIC = "kernel panic"
    FAILED = "start-up failed"
    WRONG_PROMPT = "stands at a wrong prompt"
    HUNG = "hangs"
    NEVER_BOOTS = "never boots"
    LATE = "is not ready in time"


@dataclass(frozen=True)
class BootExpectation:
    """What is expected of a boot.

    Attributes:
        ready: What the console says when the system is up.
        first_output_s: Time from power to the first character, at most.
        silence_s: Longest silence between characters until then.
        prompt_s: Silence after which what looks like a prompt is one.
        deadline_s: Time from power until it is ready, at most.
    """

    ready: re.Pattern[str]
    first_output_s: float
    silence_s: float
    prompt_s: float
    deadline_s: float


@dataclass(frozen=True)
class BootFinding:
    """How a boot has gone, and what shows it."""

    state: BootState
    detail: str


class BootWatch:
    """Watches one boot, from power on."""

    def __init__(self, expectation: BootExpectation, start_s: float) -> None:
        """Begin.

        Args:
            expectation: What is expected.
            start_s: When power was switched on, on the clock of all later instants.
        """
        self._expected = expectation
        self._start_s = self._last_s = start_s
        self._raw = bytearray()

    def feed(self, data: bytes, now_s: float) -> None:
        """Take what the console has said."""
        if data:
            self._raw += data
            self._last_s = now_s

    @property
    def text(self) -> str:
        """Return all that the console has said, without escape sequences."""
        return _ESCAPE.sub("", self._raw.decode(errors="replace")).replace("\0", "")

    def finding(self, now_s: float) -> BootFinding | None:
        """Return how the boot has gone, or None while that is open."""
        text = self.text
        if self._expected.ready.search(text):
            return BootFinding(BootState.READY, f"{now_s - self._start_s:.1f} s after power on")
        return self._told(text, now_s) or self._untold(text, now_s)

    def _told(self, text: str, now_s: float) -> BootFinding | None:
        """Return what the console says in words."""
        silent_s = now_s - self._last_s
        if failed := _FAILED.search(text):
            return BootFinding(BootState.FAILED, failed[1])
        panic = _PANIC.search(text)
        # The rest of the line may still be under way.
        if panic and (panic.end() < len(text) or silent_s >= self._expected.prompt_s):
            return BootFinding(BootState.PANIC, panic[1])
        last = text.replace("\r", "\n").rpartition("\n")[2]
        if silent_s >= self._expected.prompt_s:
            for whose, prompt in PROMPTS.items():
                if prompt.search(last):
                    return BootFinding(BootState.WRONG_PROMPT, f"{last.strip()!r}, of {whose}")
        return None

    def _untold(self, text: str, now_s: float) -> BootFinding | None:
        """Return what can only be told from time."""
        expected = self._expected
        if not self._raw:
            if now_s - self._start_s < expected.first_output_s:
                return None
            return BootFinding(
                BootState.NEVER_BOOTS, f"not one character in {expected.first_output_s:g} s after power on"
            )
        if now_s - self._last_s >= expected.silence_s:
            return BootFinding(
                BootState.HUNG, f"silent for {expected.silence_s:g} s after {self._last_line(text)}"
            )
        if now_s - self._start_s >= expected.deadline_s:
            return BootFinding(
                BootState.LATE, f"{expected.deadline_s:g} s after power on it says {self._last_line(text)}"
            )
        return None

    def _last_line(self, text: str) -> str:
        """Return the last line that is not empty, quoted, with a remark where it cannot be read."""
        unreadable = sum(not (char.isprintable() or char.isspace()) or char == "\ufffd" for char in text)
        if unreadable >= _UNREADABLE_LEAST and unreadable > _UNREADABLE_PART * len(text):
            return f"{len(self._raw)} characters that cannot be read: is the speed of the serial port right?"
        lines = [line.strip() for line in text.replace("\r", "\n").split("\n") if line.strip()]
        return repr(lines[-1][-_QUOTED:]) if lines else "empty lines"
