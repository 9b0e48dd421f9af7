# SPDX-License-Identifier: Apache-2.0
"""What tests of keyword libraries share: an open run, and no Robot Framework."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reports import RunFolder
from reports.run.current import set_current_run
from resources.keywords import judged


def _builtin() -> Any:
    return SimpleNamespace(get_variable_value=str)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunFolder]:
    """Open a run folder as the listener does; variables of a suite have their own names as values."""
    monkeypatch.setattr(judged, "BuiltIn", _builtin)
    folder = RunFolder.create(tmp_path, "virtual", "ci", simulated=True)
    set_current_run(folder)
    yield folder
    set_current_run(None)
