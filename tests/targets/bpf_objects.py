# SPDX-License-Identifier: Apache-2.0
"""Programs and maps of BPF that the kernel has, and those that processes have descriptors of."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re
import struct
from contextlib import suppress
from pathlib import Path

_SYS_BPF = {"x86_64": 321, "aarch64": 280}
_PROG_GET_FD_BY_ID, _MAP_GET_FD_BY_ID, _OBJ_GET_INFO_BY_FD, _MAP_GET_NEXT_ID = 13, 14, 15, 12
_MAP_NAME_AT, _NAME_BYTES, _INFO_BYTES = 24, 16, 256
_libc = ctypes.CDLL(None, use_errno=True)


def _bpf(command: int, attributes: ctypes.Array[ctypes.c_char]) -> int:
    """Return what the call does; raise OSError."""
    number = _SYS_BPF[platform.machine()]
    result = int(_libc.syscall(number, command, attributes, len(attributes)))
    if result < 0:
        raise OSError(ctypes.get_errno(), f"bpf({command})")
    return result


def _attributes(*words: int) -> ctypes.Array[ctypes.c_char]:
    return ctypes.create_string_buffer(struct.pack(f"{len(words)}I", *words), 128)


def _exists(command: int, number: int) -> bool:
    try:
        os.close(_bpf(command, _attributes(number)))
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise
        return False
    return True


def program_exists(number: int) -> bool:
    """Say whether the kernel has a program of this id."""
    return _exists(_PROG_GET_FD_BY_ID, number)


def map_exists(number: int) -> bool:
    """Say whether the kernel has a map of this id."""
    return _exists(_MAP_GET_FD_BY_ID, number)


def maps_named(name: str) -> set[int]:
    """Return the ids of all maps of a name."""
    found: set[int] = set()
    number = 0
    while True:
        attributes = _attributes(number)
        try:
            _bpf(_MAP_GET_NEXT_ID, attributes)
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise
            return found
        (number,) = struct.unpack_from("I", attributes, 4)
        with suppress(FileNotFoundError):  # it has ended meanwhile
            if _map_name(number) == name:
                found.add(number)


def _map_name(number: int) -> str:
    descriptor = _bpf(_MAP_GET_FD_BY_ID, _attributes(number))
    try:
        info = ctypes.create_string_buffer(_INFO_BYTES)
        asked = struct.pack("IIQ", descriptor, _INFO_BYTES, ctypes.addressof(info))
        _bpf(_OBJ_GET_INFO_BY_FD, ctypes.create_string_buffer(asked, 128))
        return info.raw[_MAP_NAME_AT : _MAP_NAME_AT + _NAME_BYTES].rstrip(b"\0").decode()
    finally:
        os.close(descriptor)


def held_by(pid: int | str, kind: str) -> set[int]:
    """Return the ids of a kind, "prog", "map" or "link", that a process has descriptors of."""
    found: set[int] = set()
    with suppress(OSError):  # it has ended meanwhile
        for descriptor in Path("/proc", str(pid), "fd").iterdir():
            with suppress(OSError):
                if not str(descriptor.readlink()).startswith("anon_inode:bpf"):
                    continue
                text = descriptor.parents[1].joinpath("fdinfo", descriptor.name).read_text()
                found |= {int(number) for number in re.findall(rf"^{kind}_id:\s*(\d+)$", text, re.MULTILINE)}
    return found


def held_by_anybody(kind: str) -> set[int]:
    """Return the same of all processes."""
    numbers = [folder.name for folder in Path("/proc").iterdir() if folder.name.isdigit()]
    return {each for number in numbers for each in held_by(number, kind)}
