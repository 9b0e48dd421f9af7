# SPDX-License-Identifier: Apache-2.0
"""What the drivers use of labgrid, with types: labgrid has none of its own."""

from __future__ import annotations

import os
import pkgutil
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from hw.errors import BenchError, BenchwrightError

C = TypeVar("C", bound=type)
P = ParamSpec("P")
R = TypeVar("R")

_labgrid: Any = import_module("labgrid")
_common: Any = import_module("labgrid.driver.common")
_client: Any = import_module("labgrid.remote.client")
_network_service: Any = import_module("labgrid.resource").NetworkService
_exceptions: Any = import_module("labgrid.exceptions")
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


def register_all() -> None:
    """Import every module of this package, which makes its drivers and resources known to bench files."""
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        import_module(f"{__package__}.{module.name}")


def resource_class(name: str) -> type | None:
    """Return the class of a resource by the name that bench files use, or None where there is none."""
    found: type | None = _labgrid.target_factory.resources.get(name)
    return found


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


def parts_of(section: Any) -> list[tuple[str, dict[str, Any]]]:
    """Return class and attributes, to be added to, of the resources or drivers of a target.

    Args:
        section: In any of labgrid's forms: a table by class, a table by name with `cls`, a list of either.

    Raises:
        ValueError: It has another form.
    """
    is_list = isinstance(section, list)
    items = cast("list[Any]", section if is_list else [section or {}])
    found: list[tuple[str, dict[str, Any]]] = []
    for item in items:
        table = _as_table(item)
        if is_list and "cls" in table:
            found.append((str(table["cls"]), table))
            continue
        for key, value in table.items():
            table[key] = attributes = _as_table({} if value is None else value)
            found.append((str(attributes.get("cls", key)), attributes))
    return found


def _as_table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{value!r}: must be a table of a class and its attributes, or of attributes")
    return cast("dict[str, Any]", value)


def in_list_form(section: Any) -> list[dict[str, Any]]:
    """Return resources or drivers in the one form of labgrid's that all others are short for.

    Raises:
        ValueError: As of `parts_of`.
    """
    return [{**attributes, "cls": name} for name, attributes in parts_of(section)]


def with_silent_ssh(drivers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return drivers, in the form of `in_list_form`, with our SSH driver for labgrid's own."""
    return [{**each, "cls": "NamespaceSSHDriver"} if each["cls"] == "SSHDriver" else each for each in drivers]


def coordinator() -> str:
    """Return where labgrid looks for the coordinator of remote places."""
    return os.environ.get("LG_COORDINATOR", "127.0.0.1:20408")


def is_unreachable_coordinator(error: Exception) -> bool:
    """Say whether labgrid has found no coordinator."""
    return isinstance(error, (ConnectionError, _client.ServerError)) and "coordinator" in str(error)


def service_address(target: Any) -> tuple[str, int] | None:
    """Return address and port of the service by which commands reach a target; None: it has none."""
    services = [each for each in target.resources if isinstance(each, _network_service)]
    for driver in target.drivers:
        bound = getattr(driver, "networkservice", None)
        if isinstance(bound, _network_service):
            services.insert(0, bound)
    return (str(services[0].address), int(services[0].port)) if services else None


def switch_on(name: str, power: Any) -> None:
    """Power a node up, whatever its labgrid driver raises.

    Raises:
        BenchError: It could not; the text names the node.
    """
    try:
        power.on()
    except BenchwrightError:
        raise
    except Exception as error:
        raise BenchError(f"node {name}: its power cannot be switched on: {error}") from error


def last_words(error: Exception) -> str:
    """Return an error of labgrid's SSH driver with what ssh itself said."""
    said: Any = getattr(error.__cause__, "stdout", None) or []
    text = " ".join(line.decode(errors="replace").strip() for line in said)
    return f"{error}: {text}" if text else str(error)


def power_driver(target: Any) -> Any:
    """Return the active power driver of a target, or None where it has none."""
    try:
        return target.get_driver("PowerProtocol")
    except _exceptions.NoDriverFoundError:
        return None


def disconnect(target: Any) -> None:
    """Close the SSH connection while its other end answers: labgrid waits a minute for one that does not."""
    try:
        target.deactivate(target.get_driver("CommandProtocol", activate=False))
    except _exceptions.NoDriverFoundError:
        return


def cpu_list(_resource: object, attribute: Any, value: Any) -> None:
    """Attribute validator of attrs: a list of CPU numbers."""
    if not isinstance(value, list) or not all(
        type(cpu) is int and cpu >= 0 for cpu in cast("list[Any]", value)
    ):
        raise ValueError(f"{attribute.name}: {value!r}; must be a list of CPU numbers, each 0 or more")


def one_of_its_faults(resource: Any, attribute: Any, value: Any) -> None:
    """Attribute validator of attrs: a fault that resources of this class know, or none."""
    known = sorted(resource.faults)
    if value not in ("", *known):
        raise ValueError(f"{attribute.name}: {value!r}; must be one of {', '.join(known)}")
