# SPDX-License-Identifier: Apache-2.0
"""What became of frames that a test made up: how many reached the kernel, how many the link lost."""

from __future__ import annotations

import ctypes
import json
import socket
import struct
import subprocess

from tests.namespace import in_namespace

ETH_P_ALL, SOL_PACKET, PACKET_STATISTICS, SO_ATTACH_FILTER = 0x0003, 263, 6, 26


class KernelShare:
    """Counts the frames from a station that reach the kernel of a namespace."""

    def __init__(self, namespace: str, interface: str, sender: bytes) -> None:
        """Begin to count frames whose source is a MAC that nobody else has."""
        # Load 4 and 2 bytes of the source, compare, accept.
        first, last = struct.unpack("!IH", sender)
        program = [
            (0x20, 0, 0, 6),
            (0x15, 0, 3, first),
            (0x28, 0, 0, 10),
            (0x15, 0, 1, last),
            (6, 0, 0, 64),
            (6, 0, 0, 0),
        ]
        code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in program))
        self._socket = in_namespace(namespace, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
        attached = struct.pack("HP", len(program), ctypes.addressof(code))
        self._socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, attached)
        self._socket.bind((interface, ETH_P_ALL))

    def frames(self) -> int:
        """Return how many have come since the last call; what this socket has no room for counts, too."""
        packets, _dropped = struct.unpack("II", self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        return packets

    def close(self) -> None:
        """End."""
        self._socket.close()


def lost_on_link(namespace: str, interface: str) -> int:
    """Return how many frames an interface has sent that the link had no room for."""
    argv = ["ip", "-n", namespace, "-json", "-stats", "link", "show", interface]
    shown = subprocess.run(argv, check=True, capture_output=True)
    return int(json.loads(shown.stdout)[0]["stats64"]["tx"]["dropped"])
