# SPDX-License-Identifier: Apache-2.0
"""The labgrid section of a bench file with what only one run knows: folders, namespaces, keys."""

from __future__ import annotations

import ipaddress
import warnings
from pathlib import Path
from typing import Any

import yaml

# Importing the drivers registers them with labgrid.
from hw.bench import BenchSpec
from hw.drivers import board, virtual_guest
from hw.drivers.attachable import attachable_attributes
from hw.drivers.labgrid_api import open_environment, register_all, with_silent_ssh
from hw.errors import ConfigError
from hw.virtual.bench_network import SWITCH, namespace_of

BOOT_DEADLINE_S = 60.0
CONSOLE_LOG = "console.log"

register_all()


def open_labgrid(spec: BenchSpec, folder: Path) -> Any:
    """Open the labgrid environment of a bench, all its targets made; None where the bench has no targets.

    Args:
        spec: The bench.
        folder: Of its run: the file for labgrid is written here, and consoles are logged below.

    Raises:
        ConfigError: labgrid refuses the section; names the bench file.
    """
    if not spec.labgrid_targets:
        return None
    file = folder / "labgrid.yaml"
    # The file's order: labgrid binds a driver to those that stand before it.
    file.write_text(yaml.safe_dump({"targets": _targets(spec, folder)}, sort_keys=False))
    with warnings.catch_warnings():
        # labgrid only warns of attributes that it does not know.
        warnings.filterwarnings("error", module=r"labgrid\.")
        try:
            environment = open_environment(str(file))
            environment.config.base = str(spec.path.resolve().parent)
            for name in spec.labgrid_targets:
                environment.get_target(name)
        except Exception as error:
            raise ConfigError(f"{spec.path}: targets: {error}") from error
    return environment


def _targets(spec: BenchSpec, folder: Path) -> dict[str, Any]:
    targets: dict[str, Any] = yaml.safe_load(yaml.safe_dump(spec.labgrid_targets, sort_keys=False))
    for name, target in targets.items():
        target["drivers"] = with_silent_ssh(target.get("drivers") or {})
        strategy = board.driver_attributes(target["drivers"])
        if strategy is not None:
            strategy["log"] = str(folder / name / CONSOLE_LOG)
    if spec.virtual is None:
        return targets
    switch = namespace_of(spec.name, SWITCH)
    for name, target in targets.items():
        resources: dict[str, Any] = target.get("resources") or {}
        guest = virtual_guest.guest_attributes(resources)
        if guest is not None:
            guest["test_mtu_bytes"] = spec.virtual.mtu_bytes
        guest = guest if guest is not None else attachable_attributes(resources)
        if guest is None:
            continue
        guest["namespace"] = switch
        guest["folder"] = str(folder / name)
        guest["control_prefix_length"] = ipaddress.IPv4Network(spec.virtual.control_subnet).prefixlen
        guest["test_prefix_length"] = ipaddress.IPv4Network(spec.virtual.test_subnet).prefixlen
        ssh = next((key for key in target["drivers"] if key.endswith("SSHDriver")), "NamespaceSSHDriver")
        target["drivers"][ssh] = {
            "namespace": switch,
            "keyfile": str(folder / name / "login_key"),
            "known_hosts": str(folder / name / "known_hosts"),
            "connection_timeout": BOOT_DEADLINE_S,
        }
    return targets
