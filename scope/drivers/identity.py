# SPDX-License-Identifier: Apache-2.0
"""Which instrument answers: the reply to `*IDN?` and the dialect that it speaks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class Dialect(StrEnum):
    """A family of instruments with one set of commands."""

    KEYSIGHT_INFINIIVISION = "keysight-infiniivision"
    TEKTRONIX_MSO = "tektronix-mso"


@dataclass(frozen=True)
class Identity:
    """The four fields of the reply to `*IDN?` (IEEE 488.2, 10.14), and what follows from them."""

    maker: str
    model: str
    serial: str
    firmware: str
    dialect: Dialect
    channels: int
    """Analogue inputs, by the model's name."""

    def __str__(self) -> str:
        return f"{self.maker},{self.model},{self.serial},{self.firmware}"


_MODELS = {
    Dialect.KEYSIGHT_INFINIIVISION: (
        # Older units say Agilent. The last digit counts the channels (KEX: "2nd-last character").
        re.compile(r"(KEYSIGHT|AGILENT) TECHNOLOGIES", re.IGNORECASE),
        re.compile(r"(?:(?:DSO|MSO|EDU)-?X ?\d{3}(\d)[AGT]?|HD3\d(\d)MSO)", re.IGNORECASE),
    ),
    Dialect.TEKTRONIX_MSO: (
        # Series 4, 5, 6, also B and low profile; the digit after the series counts the channels.
        re.compile(r"TEKTRONIX", re.IGNORECASE),
        re.compile(r"(?:MSO|LPD)[456](\d)B?(?:LP)?", re.IGNORECASE),
    ),
}


_TERMINAL = re.compile(rb"\s*>|\xff[\xfb\xfd]|.*\n\r?>", re.DOTALL)
"""So begins what a server of the Terminal protocol sends: a prompt, or telnet's WILL or DO (RFC 854)."""


def terminal_reason(reply: bytes) -> str:
    """Return what is to be done about an answer of the Terminal protocol; empty: it is none."""
    if not _TERMINAL.match(reply):
        return ""
    return (
        f"the answer is of a terminal ({reply[:40]!r}): set the protocol of the socket server to None"
        " (Tektronix: Utility, I/O, Socket Server), or use the port without a prompt (Keysight: 5025)"
    )


def parse_identity(reply: str) -> Identity:
    """Read a reply to `*IDN?`.

    Raises:
        ValueError: It is no such reply, or of an instrument that no dialect here knows.
    """
    if reason := terminal_reason(reply.encode()):
        raise ValueError(reason)
    fields = [part.strip() for part in reply.split(",")]
    if len(fields) != 4:
        raise ValueError(f"not four fields but {reply[:80]!r}")
    maker, model, serial, firmware = fields
    for dialect, (makers, models) in _MODELS.items():
        match = models.fullmatch(model)
        if makers.fullmatch(maker) and match:
            digit = next(group for group in match.groups() if group is not None)
            return Identity(maker, model, serial, firmware, dialect, int(digit))
    raise ValueError(
        f"{maker} {model} is neither a Keysight InfiniiVision nor a Tektronix 4, 5 or 6 Series MSO"
        f" ({reply[:80]!r})"
    )
