# SPDX-License-Identifier: Apache-2.0
"""The labgrid section of a bench file with what only one run knows: folders, namespaces, keys."""

from __future__ import annotations

import ipaddress
import warnings
from pathlib import Path
from typing import Any

import yaml

# Importing the drivers registers them with labgrid.
from hw.bench import SWITCH, BenchSpec
from hw.drivers import board, virtual_guest
from hw.drivers.attachable import attachable_attributes
from hw.drivers.labgrid_api import (
    coordinator,
    in_list_form,
    is_unreachable_coordinator,
    open_environment,
    register_all,
    service_address,
    with_silent_ssh,
)
from hw.errors import BenchError, ConfigError
from hw.fields import HOST_LABELS, can_be_looked_up
from hw.virtual.bench_network import namespace_of

BOOT_DEADLINE_S = 60.0
CONSOLE_LOG = "console.log"

_imported: set[str] = set()
"""What this process has imported for benches: labgrid takes a driver's name once."""

register_all()


def open_labgrid(spec: BenchSpec, folder: Path) -> Any:
    """Open the labgrid environment of a bench, all its targets made; None where the bench has no targets.

    Args:
        spec: The bench.
        folder: Of its run: the file for labgrid is written here, and consoles are logged below.

    Raises:
        ConfigError: labgrid refuses the section; names the bench file.
        BenchError: A remote place's coordinator does not answer.
    """
    if not spec.labgrid_targets:
        return None
    file = folder / "labgrid.yaml"
    with warnings.catch_warnings():
        # labgrid only warns of attributes that it does not know.
        warnings.filterwarnings("error", module=r"labgrid\.")
        imports = [each for each in spec.labgrid_imports if each not in _imported]
        where = "targets"
        try:
            # The file's order: labgrid binds a driver to those that stand before it.
            document = {"targets": _targets(spec, folder), "imports": imports}
            file.write_text(yaml.safe_dump(document, sort_keys=False))
            where = "imports" if imports else "targets"
            environment = open_environment(str(file))
            _imported.update(imports)
            environment.config.base = str(spec.path.resolve().parent)
            for name in spec.labgrid_targets:
                where = f"targets: {name}"
                _check_host(service_address(environment.get_target(name)))
        except Exception as error:
            if is_unreachable_coordinator(error):
                raise BenchError(
                    f"{spec.path}: {where}: RemotePlace: no coordinator answers at {coordinator()}:"
                    " LG_COORDINATOR must be its HOST:PORT"
                ) from error
            raise ConfigError(f"{spec.path}: {where}: {error}") from error
    return environment


def _check_host(service: tuple[str, int] | None) -> None:
    """Refuse the address of a service that nobody could look up."""
    if service is not None and not can_be_looked_up(service[0]):
        raise ConfigError(f"address: must be HOST, {HOST_LABELS}, or an IP address, found {service[0]!r}")


def _targets(spec: BenchSpec, folder: Path) -> dict[str, Any]:
    targets: dict[str, Any] = yaml.safe_load(yaml.safe_dump(spec.labgrid_targets, sort_keys=False))
    for name, target in targets.items():
        target["resources"] = in_list_form(target.get("resources"))
        target["drivers"] = with_silent_ssh(in_list_form(target.get("drivers")))
        strategy = board.driver_attributes(target["drivers"])
        if strategy is not None:
            strategy["log"] = str(folder / name / CONSOLE_LOG)
    if spec.virtual is None:
        return targets
    switch = namespace_of(spec.name, SWITCH)
    for name, target in targets.items():
        guest = virtual_guest.guest_attributes(target["resources"])
        if guest is not None:
            guest["test_mtu_bytes"] = spec.virtual.mtu_bytes
        guest = guest if guest is not None else attachable_attributes(target["resources"])
        if guest is None:
            continue
        guest["namespace"] = switch
        guest["folder"] = str(folder / name)
        guest["control_prefix_length"] = ipaddress.IPv4Network(spec.virtual.control_subnet).prefixlen
        guest["test_prefix_length"] = ipaddress.IPv4Network(spec.virtual.test_subnet).prefixlen
        ssh = next((each for each in target["drivers"] if each["cls"].endswith("SSHDriver")), None)
        if ssh is None:
            ssh = dict[str, Any](cls="NamespaceSSHDriver")
            target["drivers"].append(ssh)
        ssh["namespace"] = switch
        ssh["keyfile"] = str(folder / name / "login_key")
        ssh["known_hosts"] = str(folder / name / "known_hosts")
        ssh["connection_timeout"] = BOOT_DEADLINE_S
    return targets
