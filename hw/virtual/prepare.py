# SPDX-License-Identifier: Apache-2.0
"""What machines of a virtual bench are made from, made before the bench is opened: no suite waits for it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

from hw.bench import BenchSpec
from hw.drivers.labgrid_api import in_list_form
from hw.virtual import image, image_recipe, windows_prefix
from hw.virtual.image import Progress

Makers = Mapping[str, Callable[[Progress], object]]
"""By name: what makes a thing that is not in the cache yet."""

_GUESTS = ("VirtualGuest", "VirtualBoard")
_WINDOWS = "VirtualWindows"


def has_guests(spec: BenchSpec) -> bool:
    """Return whether any machine of a bench is a guest of QEMU."""
    return any(resource["cls"] in _GUESTS for resource in _resources(spec))


def _resources(spec: BenchSpec, off: Collection[str] = ()) -> Iterator[dict[str, Any]]:
    """Yield the resources of all machines of a bench but those that stay off."""
    for name, machine in spec.labgrid_targets.items():
        if name not in off:
            yield from in_list_form(machine.get("resources"))


def missing(spec: BenchSpec, targets: Collection[str]) -> Makers:
    """Return what has to be made before machines of a bench can be powered.

    Args:
        spec: The bench.
        targets: Those that a run takes; machines of the others stay off.
    """
    off = {target.node for name, target in spec.targets.items() if name not in targets}
    kinds: dict[str, str] = {}
    windows = False
    for resource in _resources(spec, off):
        windows = windows or resource["cls"] == _WINDOWS
        if resource["cls"] in _GUESTS:
            kinds.setdefault(resource.get("image", image_recipe.DEFAULT_KIND), resource.get("role", "target"))
    makers: dict[str, Callable[[Progress], object]] = {}
    for kind, role in kinds.items():
        if kind in image_recipe.RECIPES and image.find(role, kind) is None:
            makers[kind] = _image_maker(role, kind)
    if windows and not windows_prefix.is_made():
        makers["windows"] = windows_prefix.prefix_or_make
    return makers


def _image_maker(role: str, kind: str) -> Callable[[Progress], object]:
    return lambda say: image.build_or_get(role, say, kind)


def prepare(makers: Makers) -> None:
    """Make all side by side, and print what is being done.

    Raises:
        BenchwrightError: One could not be made.
    """
    if not makers:
        return
    began_s = time.monotonic()
    print(f"images    {', '.join(makers)} (once; kept in {image.cache_folder().parent})", flush=True)
    with ThreadPoolExecutor(len(makers)) as pool:
        made = {pool.submit(make, _say(name)): name for name, make in makers.items()}
        for each in as_completed(made):
            each.result()
    print(f"images    ready after {time.monotonic() - began_s:.0f} s", flush=True)


def _say(name: str) -> Progress:
    def say(line: str) -> None:
        print(f"images    {name}: {line}", file=sys.stderr, flush=True)

    return say
