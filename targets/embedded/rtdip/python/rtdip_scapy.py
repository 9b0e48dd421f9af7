# SPDX-License-Identifier: Apache-2.0
"""RTDiP for scapy: `Ether(dst=…) / Rtdip(destination_port=7000, priority="low") / b"data"`.

The format is in docs/rtdip.md. `length` and `version` are filled in; set, they stay as they are, so that
wrong frames can be made.
"""

from __future__ import annotations

from scapy.fields import ByteEnumField, ByteField, IntField, LenField, ShortField
from scapy.layers.l2 import Ether
from scapy.packet import Packet, bind_layers

__all__ = ["ETHERTYPE", "FRAGMENT_PORTS", "PRIORITIES", "VERSION", "Rtdip", "RtdipFragment", "RtdipGrant"]

ETHERTYPE = 0x88B5
VERSION = 1
PRIORITIES = {0: "high", 1: "medium", 2: "low"}
FRAGMENT_PORTS = range(20010, 26560)
"""Ports of a replay's streams: what goes there is read as fragments, what comes from there as grants."""


class RtdipFragment(Packet):
    """What stands before each part of a message of bw-traffic: its number, the part's place in bytes."""

    name = "RTDiP fragment"
    fields_desc = [IntField("message", 0), IntField("offset", 0)]  # noqa: RUF012 - as scapy has it


class RtdipGrant(Packet):
    """How far the sender of a message may go on, in bytes of it, in the run with that nonce."""

    name = "RTDiP grant"
    fields_desc = [IntField("run", 0), IntField("message", 0), IntField("limit", 0)]  # noqa: RUF012


class Rtdip(Packet):
    """The header of a frame; what is behind `length` bytes of data is padding."""

    name = "RTDiP"
    fields_desc = [  # noqa: RUF012 - as scapy has it
        ShortField("destination_port", 0),
        ByteEnumField("priority", 0, PRIORITIES),
        ByteField("version", VERSION),
        LenField("length", None, fmt="H"),
        ShortField("source_port", 0),
        IntField("sequence", 0),
    ]

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes]:
        """Return data and padding of what is behind the header."""
        return s[: self.length], s[self.length :]

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """Return fragments to the ports of a replay and grants from them, plain data for others."""
        if self.destination_port in FRAGMENT_PORTS and len(payload) >= len(RtdipFragment()):
            return RtdipFragment
        if self.source_port in FRAGMENT_PORTS and self.length == len(RtdipGrant()):
            return RtdipGrant
        return super().guess_payload_class(payload)


bind_layers(Ether, Rtdip, type=ETHERTYPE)
