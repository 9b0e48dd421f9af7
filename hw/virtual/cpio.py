# SPDX-License-Identifier: Apache-2.0
"""Write cpio archives of the `newc` format, as the kernel unpacks them.

Source: `Documentation/driver-api/early-userspace/buffer-format.rst` of the kernel.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable
from dataclasses import dataclass

_ALIGNMENT = 4
# The kernel looks for a further archive at the next multiple of 4; 512 is what cpio(1) itself pads to.
_BLOCK = 512
_TRAILER = "TRAILER!!!"


@dataclass(frozen=True)
class Entry:
    """One file, folder, link or device of an archive; all belong to root and have no time.

    Attributes:
        path: Path without a leading slash.
        mode: File type and permission bits, as of stat(2).
        data: Content of a file, target of a symbolic link, otherwise empty.
        device: Major and minor number of a device node.
    """

    path: str
    mode: int
    data: bytes = b""
    device: tuple[int, int] = (0, 0)


def directory(path: str, permissions: int = 0o755) -> Entry:
    """Return a folder."""
    return Entry(path, stat.S_IFDIR | permissions)


def file(path: str, data: bytes, permissions: int = 0o644) -> Entry:
    """Return a plain file."""
    return Entry(path, stat.S_IFREG | permissions, data)


def symlink(path: str, target: str) -> Entry:
    """Return a symbolic link."""
    return Entry(path, stat.S_IFLNK | 0o777, target.encode())


def character_device(path: str, major: int, minor: int) -> Entry:
    """Return a character device node."""
    return Entry(path, stat.S_IFCHR | 0o600, device=(major, minor))


def archive(entries: Iterable[Entry]) -> bytes:
    """Return the archive of the entries in their order; a folder must come before what is in it.

    The same entries always give the same bytes.
    """
    blob = bytearray()
    for inode, entry in enumerate(entries, start=1):
        blob += _record(entry, inode)
    blob += _record(Entry(_TRAILER, 0), 0)
    return bytes(blob) + b"\0" * (-len(blob) % _BLOCK)


def _record(entry: Entry, inode: int) -> bytes:
    name = entry.path.encode() + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    numbers = (inode, entry.mode, 0, 0, links, 0, len(entry.data), 0, 0, *entry.device, len(name), 0)
    header = b"070701" + b"".join(b"%08X" % number for number in numbers) + name
    return _padded(header) + _padded(entry.data)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % _ALIGNMENT)
