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
        earliest_utc_ns: True UTC is not before this,
        latest_utc_ns: and not after this, as long as the counter's drift is within the service's limit of it.
        bound_ns: |utc_ns - true UTC| is at most this: the farther of the two.
        u_ns: U of utc_ns (k = 2), from the scatter of exchanges; at most bound_ns.
        epoch: Steps since the boot.
        tai_utc_s: TAI - UTC; 0: unknown.
        state: What it rests on.
        stepped: The time was stepped since the clock's last stamp (`Flag.TELL_STEPS`).
        leap: 1: the last minute of the day has 61 s, 2: 59 s, 0: neither, 3: unknown.
    """

    utc_ns: int
    earliest_utc_ns: int
    latest_utc_ns: int
    bound_ns: int
    u_ns: int
    epoch: int
    tai_utc_s: int
    state: State
    stepped: bool
    leap: int


class _Stamp(ctypes.Structure):
    _fields_ = (
        ("utc_ns", ctypes.c_int64),
        ("earliest_utc_ns", ctypes.c_int64),
        ("latest_utc_ns", ctypes.c_int64),
        ("bound_ns", ctypes.c_int64),
        ("u_ns", ctypes.c_int64),
        ("epoch", ctypes.c_uint64),
        ("tai_utc_s", ctypes.c_int32),
        ("state", ctypes.c_uint32),
        ("stepped", ctypes.c_uint32),
        ("leap", ctypes.c_int32),
    )


@dataclass(frozen=True)
class Condition:
    """How well the time is known, by the service's last word.

    Attributes:
        heard_utc_ns: The last exchange with a server: since then the time runs free.
        valid_until_utc_ns: Then the bound is wider than the service allows.
        growth_ppb: Of the interval, at either end.
        disruptions: How often the time was withdrawn or stepped, counted since the boot.
        publications: How often the service has published, counted since the boot.
        state: Of the service.
    """

    heard_utc_ns: int
    valid_until_utc_ns: int
    growth_ppb: int
    disruptions: int
    publications: int
    state: State


class _Condition(ctypes.Structure):
    _fields_ = (
        ("heard_utc_ns", ctypes.c_int64),
        ("valid_until_utc_ns", ctypes.c_int64),
        ("growth_ppb", ctypes.c_int64),
        ("disruptions", ctypes.c_uint64),
        ("publications", ctypes.c_uint64),
        ("state", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
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
    library.bwtime_condition.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Condition)]
    library.bwtime_past.argtypes = [ctypes.c_void_p, ctypes.c_int64, stamps]
    library.bwtime_difference.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, signed, signed]
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
        raw.utc_ns,
        raw.earliest_utc_ns,
        raw.latest_utc_ns,
        raw.bound_ns,
        raw.u_ns,
        raw.epoch,
        raw.tai_utc_s,
        State(raw.state),
        bool(raw.stepped),
        raw.leap,
    )


class Clock:
    """A handle; close it, or use it as a context manager. Opening succeeds while no service is there.

    One that is dropped is closed.
    """

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

    def __del__(self) -> None:
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
        """Return the times of earlier `Clock.ticks()`; raises BwtimeError.

        Those from before the time was last withdrawn or stepped have none.
        """
        raw = (_Stamp * len(ticks))()
        numbers = (ctypes.c_uint64 * len(ticks))(*ticks)
        self._check(_library.bwtime_from_ticks(self._open(), numbers, len(ticks), raw))
        return [_stamp(each) for each in raw]

    def condition(self) -> Condition:
        """Return how well the time is known, and since when; raises BwtimeError."""
        raw = _Condition()
        self._check(_library.bwtime_condition(self._open(), ctypes.byref(raw)))
        return Condition(
            raw.heard_utc_ns,
            raw.valid_until_utc_ns,
            raw.growth_ppb,
            raw.disruptions,
            raw.publications,
            State(raw.state),
        )

    def past(self, realtime_ns: int) -> Stamp:
        """Return the time of a stamp by CLOCK_REALTIME, at most a second ago; raises BwtimeError.

        A step of the system's clock in between is seen where this was called before; it raises once.
        """
        raw = _Stamp()
        self._check(_library.bwtime_past(self._open(), realtime_ns, ctypes.byref(raw)))
        return _stamp(raw)

    def difference_ns(self, from_ticks: int, to_ticks: int) -> tuple[int, int]:
        """Return the time from one `Clock.ticks()` to another, and its bound; raises BwtimeError.

        They are at most an hour apart. No offset is in the error.
        """
        duration, bound = ctypes.c_int64(), ctypes.c_int64()
        result = _library.bwtime_difference(
            self._open(), from_ticks, to_ticks, ctypes.byref(duration), ctypes.byref(bound)
        )
        self._check(result)
        return duration.value, bound.value

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
