# SPDX-License-Identifier: Apache-2.0
"""YAML that would take a machine's memory or its stack is refused, with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from hw.errors import ConfigError
from hw.strict_yaml import BYTES_MAX, read_yaml

LAUGHS = "a0: &a0 [x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join(9 * [f'*a{n - 1}'])}]\n" for n in range(1, 20)
)
"""A kilobyte that stands for 10^18 values."""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LAUGHS, r"bench.yaml:\d+: must stand for 100000 values at most"),
        ("a: &a {b: *a}\n", r"bench.yaml:1: must stand for 100000 values at most"),
        ("a: " + "[" * 20_000 + "]" * 20_000 + "\n", "nested too deep"),
        ("a: " + "x" * BYTES_MAX + "\n", "must have 1048576 bytes at most"),
        ("a: 1\na: 2\n", "bench.yaml:2: a: the key stands twice"),
    ],
)
def test_what_would_grow_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "bench.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=said):
        read_yaml(file)
