# SPDX-License-Identifier: Apache-2.0
"""Note each file that is opened below a folder, by fanotify(7): whoever opens it, in whatever namespace."""

from __future__ import annotations

import ctypes
import os
import select
import struct
import threading
from pathlib import Path
from types import TracebackType

from hw.errors import CapabilityError

# <linux/fanotify.h>
_FAN_CLOEXEC = 0x01
_FAN_UNLIMITED_QUEUE = 0x10
_FAN_OPEN = 0x20
_FAN_OPEN_EXEC = 0x1000
_FAN_Q_OVERFLOW = 0x4000
_FAN_MARK_ADD = 0x01
_FAN_MARK_FILESYSTEM = 0x100
_AT_FDCWD = -100
_METADATA = struct.Struct("IBBHQii")
_BUFFER_BYTES = 1 << 18
_DELETED = " (deleted)"


class Opened:
    """The files opened below a mount point while the context is held.

    Attributes:
        files: Absolute paths as seen from the mount point; a file that was removed meanwhile is left out.
    """

    def __init__(self, mount_point: Path) -> None:
        """Watch the file system that is mounted there.

        Raises:
            CapabilityError: The kernel does not allow it.
        """
        self.files: set[str] = set()
        self._prefix = str(mount_point)
        self._is_whole = mount_point.is_mount()
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = self._libc.fanotify_init(
            _FAN_CLOEXEC | _FAN_UNLIMITED_QUEUE, os.O_RDONLY | os.O_LARGEFILE | os.O_CLOEXEC
        )
        self._check(self._fd)
        events = ctypes.c_uint64(_FAN_OPEN | _FAN_OPEN_EXEC)
        self._check(
            self._libc.fanotify_mark(
                self._fd, _FAN_MARK_ADD | _FAN_MARK_FILESYSTEM, events, _AT_FDCWD, os.fsencode(mount_point)
            )
        )
        self._end, self._ended = os.pipe()
        self._reader = threading.Thread(target=self._read, name="opened", daemon=True)
        self._lost = False

    def _check(self, returned: int) -> None:
        if returned < 0:
            reason = os.strerror(ctypes.get_errno())
            raise CapabilityError(f"fanotify: {reason}: needs root and a kernel from 5.1 on with fanotify")

    def __enter__(self) -> Opened:
        """Begin."""
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take what is still in the queue, and end.

        Raises:
            CapabilityError: The kernel has dropped events, so that `files` lacks some.
        """
        os.write(self._ended, b".")
        self._reader.join()
        for fd in (self._fd, self._end, self._ended):
            os.close(fd)
        if self._lost and error is None:
            raise CapabilityError("fanotify: the kernel's queue ran over: the list of files is not whole")

    def _read(self) -> None:
        while True:
            ready, _, _ = select.select([self._fd, self._end], [], [])
            if self._fd in ready:
                self._take(os.read(self._fd, _BUFFER_BYTES))
            elif self._end in ready:
                return

    def _take(self, events: bytes) -> None:
        offset = 0
        while offset < len(events):
            length, _, _, _, mask, fd, _ = _METADATA.unpack_from(events, offset)
            offset += length
            if mask & _FAN_Q_OVERFLOW:
                self._lost = True
                continue
            path = str(Path(f"/proc/self/fd/{fd}").readlink())
            os.close(fd)
            inside = path.startswith(self._prefix + "/")
            # Who has it as the root has other paths: all that is opened on the file system lies in it.
            if (inside or self._is_whole) and not path.endswith(_DELETED):
                self.files.add(path.removeprefix(self._prefix))
