# SPDX-License-Identifier: Apache-2.0
"""Robot Framework's decorators with types, and the way that Benchwright's errors become Robot's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

from robot.api import Error, SkipExecution

from hw.errors import BenchError, BenchwrightError, CapabilityError, ConfigError, MeasurementError
from reports.errors import RecordError, ReportError

C = TypeVar("C", bound=type)
P = ParamSpec("P")
R = TypeVar("R")

_deco: Any = import_module("robot.api.deco")  # no types of its own

_KINDS = {
    ConfigError: "CONFIG ERROR",
    BenchError: "BENCH ERROR",
    MeasurementError: "MEASUREMENT ERROR",
}


def library(**options: Any) -> Callable[[C], C]:
    """Mark a class as a keyword library; options as of `robot.api.deco.library`."""
    decorate: Callable[[C], C] = _deco.library(**options)
    return decorate


def keyword(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a method as a keyword whose errors say who is at fault.

    A missing capability skips. Any other error of Benchwright fails with its kind: `CONFIG ERROR:`,
    `BENCH ERROR:` or `MEASUREMENT ERROR:`. A record that cannot be made is an invalid measurement; a file or
    a run folder that this machine cannot write is a fault of the bench.
    """

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except CapabilityError as error:
            raise SkipExecution(f"SKIPPED: {error}") from error
        except (BenchwrightError, ReportError, OSError) as error:
            raise Error(f"{_kind(error)}: {error}") from error
        except RuntimeError as error:
            if type(error) is not RuntimeError:
                raise
            raise Error(f"RuntimeError: {error}") from error  # Robot Framework says its text alone

    marked: Callable[P, R] = _deco.keyword(wrapper)
    return marked


def _kind(error: Exception) -> str:
    if isinstance(error, RecordError):
        return _KINDS[MeasurementError]
    return next((kind for base, kind in _KINDS.items() if isinstance(error, base)), _KINDS[BenchError])
