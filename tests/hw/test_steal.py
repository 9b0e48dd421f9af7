# SPDX-License-Identifier: Apache-2.0
"""What the hypervisor takes is read for each CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from hw import steal


def test_what_is_stolen_is_read_for_each_cpu() -> None:
    text = "cpu  1 1 1 1 1 1 1 300 1 1\ncpu0 1 1 1 1 1 1 1 100 1 1\ncpu1 1 1 1 1 1 1 1 200 1 1\nintr 7\n"
    first, second = steal.stolen_s(text)
    assert second == 2 * first > 0


def test_a_system_that_does_not_say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(steal, "STAT", tmp_path / "stat")
    assert steal.stolen_s() == ()
