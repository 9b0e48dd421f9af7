# SPDX-License-Identifier: Apache-2.0
"""The environment of all templates: what is unknown is an error, and text is escaped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from jinja2 import Environment, PackageLoader, StrictUndefined


def template_environment(package: str, filters: Mapping[str, Callable[..., Any]]) -> Environment:
    """Return an environment for the templates of a package, with its filters."""
    environment = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    cast("dict[str, object]", environment.filters).update(filters)
    return environment
