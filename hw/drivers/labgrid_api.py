# SPDX-License-Identifier: Apache-2.0
"""What the drivers use of labgrid, with types: labgrid has none of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

C = TypeVar("C", bound=type)
P = ParamSpec("P")
R = TypeVar("R")

_labgrid: Any = import_module("labgrid")
_common: Any = import_module("labgrid.driver.common")
_steps: Any = import_module("labgrid.step").steps


def _nest_steps_by_thread() -> None:
    """Give each thread its own nesting of labgrid's steps: nodes are powered on at the same time."""
    local = threading.local()

    def stack(_steps: Any) -> list[Any]:
        found: list[Any] = local.__dict__.setdefault("stack", [])
        return found

    base: Any = _steps.__class__
    _steps.__class__ = type("StepsByThread", (base,), {"_stack": property(stack)})


_nest_steps_by_thread()


def register_driver(driver: C) -> C:
    """Make a driver known to bench files by the name of its class."""
    _labgrid.target_factory.reg_driver(driver)
    return driver


def register_resource(resource: C) -> C:
    """Make a resource known to bench files by the name of its class."""
    _labgrid.target_factory.reg_resource(resource)
    return resource


def check_active(method: Callable[P, R]) -> Callable[P, R]:
    """Refuse calls of a driver's method while the driver is not active."""
    checked: Callable[P, R] = _common.Driver.check_active(method)
    return checked


def target_name(part: Any) -> str:
    """Return the name of the labgrid target that a driver or resource belongs to."""
    return str(part.target.name)


def open_environment(file: str) -> Any:
    """Read a labgrid environment.

    Args:
        file: Path of its YAML file.
    """
    return _labgrid.Environment(file)
