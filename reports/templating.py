# SPDX-License-Identifier: Apache-2.0
"""The environment of all templates: what is unknown is an error, and text is escaped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from jinja2 import ChoiceLoader, Environment, FunctionLoader, PackageLoader, StrictUndefined


def template_environment(package: str, filters: Mapping[str, Callable[..., Any]]) -> Environment:
    """Return an environment for the templates of a package, and for those named by an absolute path."""
    environment = Environment(
        loader=ChoiceLoader([FunctionLoader(_at_path), PackageLoader(package)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    cast("dict[str, object]", environment.filters).update(filters)
    return environment


def _at_path(name: str) -> str | None:
    path = Path(name)
    return path.read_text(encoding="utf-8") if path.is_absolute() else None
