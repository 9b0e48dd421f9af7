# SPDX-License-Identifier: Apache-2.0
"""Network time with its bound, without a system call: the library of Benchwright's time service.

    from bwtime import Clock

    with Clock() as clock:
        stamp = clock.now()
        print(stamp.utc_ns, stamp.bound_ns)

A `Clock` is one handle of `libbwtime`: use one in each thread. Its time never goes backwards.
"""

from __future__ import annotations

import ctypes
import os
import sys
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from pathlib import Path
from types import TracebackType

__all__ = [
    "BwtimeError",
    "Clock",
    "CounterRefusedError",
    "Flag",
    "NoServiceError",
    "NotSynchronisedError",
    "Result",
    "Stamp",
    "State",
    "SteppedError",
]


class Flag(IntFlag):
    """How a clock is opened."""

    TELL_STEPS = 1
    """Give the new time after a step at once, backwards too; `Stamp.stepped` tells."""
    ORDERED = 2
    """Read the counter after all loads that precede."""


class Result(IntEnum):
    """Why there is no time."""

    NO_SERVICE = -2
    NO_MEMORY = -12
    DENIED = -13
    BAD_ARGUMENT = -22
    NO_TAI = -34
    NO_SYNC = -61
    BAD_VERSION = -71
    BAD_PAGE = -74
    BAD_COUNTER = -95
    STEPPED = -116


class State(IntEnum):
    """What a time rests on."""

    SYNCHRONISED = 2
    HOLDOVER = 3
    ENDED = 6


class BwtimeError(OSError):
    """There is no time; `result` and the text say why."""

    def __init__(self, result: int, why: str) -> None:
        super().__init__(-result, why)
        self.result = result


class NoServiceError(BwtimeError):
    """No service has been here since the boot."""


class NotSynchronisedError(BwtimeError):
    """There is no time with a bound now."""


class SteppedError(BwtimeError):
    """The time was stepped: see `Clock.accept_step`."""


class CounterRefusedError(BwtimeError):
    """This machine's counter cannot serve."""


_ERRORS: dict[int, type[BwtimeError]] = {
    Result.NO_SERVICE: NoServiceError,
    Result.NO_SYNC: NotSynchronisedError,
    Result.STEPPED: SteppedError,
    Result.BAD_COUNTER: CounterRefusedError,
}


@dataclass(frozen=True)
class Stamp:
    """A time.

    Attributes:
        utc_ns: Since 1970, without leap seconds.
        bound_ns: |utc_ns - true UTC| is at most this.
        epoch: Steps since the boot.
        tai_utc_s: TAI - UTC; 0: unknown.
        state: What it rests on.
        stepped: The time was stepped since the clock's last stamp (`Flag.TELL_STEPS`).
        leap: 1: the last minute of the day has 61 s, 2: 59 s, 0: neither, 3: unknown.
    """

    utc_ns: int
    bound_ns: int
    epoch: int
    tai_utc_s: int
    state: State
    stepped: bool
    leap: int


class _Stamp(ctypes.Structure):
    _fields_ = (
        ("utc_ns", ctypes.c_int64),
        ("bound_ns", ctypes.c_int64),
        ("epoch", ctypes.c_uint64),
        ("tai_utc_s", ctypes.c_int32),
        ("state", ctypes.c_uint32),
        ("stepped", ctypes.c_uint32),
        ("leap", ctypes.c_int32),
    )


def _load() -> ctypes.CDLL:
    name = "bwtime.dll" if sys.platform == "win32" else "libbwtime.so"
    beside = Path(__file__).with_name(name)
    library = ctypes.CDLL(os.environ.get("BWTIME_LIBRARY") or (str(beside) if beside.exists() else name))
    library.bwtime_open.argtypes = [ctypes.c_char_p, ctypes.c_uint, ctypes.POINTER(ctypes.c_void_p)]
    library.bwtime_close.argtypes = [ctypes.c_void_p]
    library.bwtime_close.restype = None
    library.bwtime_now_ns.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64)]
    library.bwtime_now.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Stamp)]
    signed, unsigned = ctypes.POINTER(ctypes.c_int64), ctypes.POINTER(ctypes.c_uint64)
    library.bwtime_now_tai_ns.argtypes = [ctypes.c_void_p, signed, signed]
    library.bwtime_now_ntp.argtypes = [ctypes.c_void_p, unsigned, signed]
    library.bwtime_stamps.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Stamp), ctypes.c_size_t]
    stamps = ctypes.POINTER(_Stamp)
    library.bwtime_from_ticks.argtypes = [ctypes.c_void_p, unsigned, ctypes.c_size_t, stamps]
    library.bwtime_ticks.restype = ctypes.c_uint64
    library.bwtime_accept_step.argtypes = [ctypes.c_void_p]
    library.bwtime_last_step_ns.argtypes = [ctypes.c_void_p]
    library.bwtime_last_step_ns.restype = ctypes.c_int64
    library.bwtime_publications.argtypes = [ctypes.c_void_p]
    library.bwtime_publications.restype = ctypes.c_uint64
    library.bwtime_why.argtypes = [ctypes.c_void_p]
    library.bwtime_why.restype = ctypes.c_char_p
    library.bwtime_result_name.argtypes = [ctypes.c_int]
    library.bwtime_result_name.restype = ctypes.c_char_p
    library.bwtime_abi_version.restype = ctypes.c_uint
    if library.bwtime_abi_version() != 1:
        raise ImportError(f"libbwtime has ABI {library.bwtime_abi_version()}, not 1")
    return library


_library = _load()


def _stamp(raw: _Stamp) -> Stamp:
    return Stamp(
        raw.utc_ns, raw.bound_ns, raw.epoch, raw.tai_utc_s, State(raw.state), bool(raw.stepped), raw.leap
    )


class Clock:
    """A handle; close it, or use it as a context manager. Opening succeeds while no service is there."""

    def __init__(self, path: str | os.PathLike[str] | None = None, flags: int = 0) -> None:
        self._handle = ctypes.c_void_p()
        result = _library.bwtime_open(
            None if path is None else os.fsencode(path), int(flags), ctypes.byref(self._handle)
        )
        if result:
            raise BwtimeError(result, _library.bwtime_result_name(result).decode())

    def __enter__(self) -> Clock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the handle; again is harmless."""
        handle, self._handle = self._handle, ctypes.c_void_p()
        _library.bwtime_close(handle)

    def now_ns(self) -> int:
        """Return UTC in ns since 1970; raises BwtimeError."""
        value = ctypes.c_int64()
        self._check(_library.bwtime_now_ns(self._open(), ctypes.byref(value)))
        return value.value

    def now(self) -> Stamp:
        """Return the time with its bound; raises BwtimeError."""
        raw = _Stamp()
        self._check(_library.bwtime_now(self._open(), ctypes.byref(raw)))
        return _stamp(raw)

    def now_tai_ns(self) -> int:
        """Return TAI in ns since 1970; raises BwtimeError, where TAI - UTC is unknown too."""
        value = ctypes.c_int64()
        self._check(_library.bwtime_now_tai_ns(self._open(), ctypes.byref(value), None))
        return value.value

    def now_ntp(self) -> int:
        """Return the time as NTP has it: units of 2^-32 s since 1900, modulo 2^64; raises BwtimeError."""
        value = ctypes.c_uint64()
        self._check(_library.bwtime_now_ntp(self._open(), ctypes.byref(value), None))
        return value.value

    def stamps(self, count: int) -> list[Stamp]:
        """Return readings one right after the other; raises BwtimeError."""
        raw = (_Stamp * count)()
        self._check(_library.bwtime_stamps(self._open(), raw, count))
        return [_stamp(each) for each in raw]

    def from_ticks(self, ticks: list[int]) -> list[Stamp]:
        """Return the times of earlier `Clock.ticks()`; raises BwtimeError."""
        raw = (_Stamp * len(ticks))()
        numbers = (ctypes.c_uint64 * len(ticks))(*ticks)
        self._check(_library.bwtime_from_ticks(self._open(), numbers, len(ticks), raw))
        return [_stamp(each) for each in raw]

    @staticmethod
    def ticks() -> int:
        """Return the processor's counter; 0: there is none."""
        return int(_library.bwtime_ticks())

    def accept_step(self) -> None:
        """Take note of a step: go on with the new time."""
        _library.bwtime_accept_step(self._open())

    @property
    def last_step_ns(self) -> int:
        """Return the size of the last step; positive: the time went forward."""
        return int(_library.bwtime_last_step_ns(self._open()))

    @property
    def publications(self) -> int:
        """Return how often the service had published when this clock last looked."""
        return int(_library.bwtime_publications(self._open()))

    @property
    def why(self) -> str:
        """Return why the last reading gave no time; empty when it did."""
        return _library.bwtime_why(self._open()).decode()

    def _open(self) -> ctypes.c_void_p:
        if not self._handle:
            raise ValueError("the clock is closed")
        return self._handle

    def _check(self, result: int) -> None:
        if result:
            why = self.why or _library.bwtime_result_name(result).decode()
            raise _ERRORS.get(result, BwtimeError)(result, why)
