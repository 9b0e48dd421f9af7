# SPDX-License-Identifier: Apache-2.0
"""The sections of the report: `SECTION` of `section.py` in the folder of each capability that has one."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from reports.capabilities import CAPABILITIES, HERE
from reports.section import Section

_WITH_ONE = tuple(name for name in CAPABILITIES if (HERE / name / "section.py").exists())
SECTIONS: tuple[Section, ...] = tuple(import_module(f"reports.{name}.section").SECTION for name in _WITH_ONE)
OF_SECTIONS: frozenset[str] = frozenset(each for name in _WITH_ONE for each in CAPABILITIES[name].quantities)
"""The quantities of capabilities that have one: it shows their checks of the bench."""
FOLDERS: Mapping[str, str] = {section.name: name for name, section in zip(_WITH_ONE, SECTIONS, strict=True)}
"""The folder of each section's capability, by the section's name."""
