# SPDX-License-Identifier: Apache-2.0
"""YAML that would take a machine's memory or its stack, or lose a key, is refused, with file and line."""

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
        ("1: a\n'1': b\n", "bench.yaml:2: 1: the key stands twice"),
        ("1: a\ntrue: b\n", "bench.yaml:2: true: the key stands twice"),
        ("1: a\n01: b\n", "bench.yaml:2: 01: the key stands twice"),
        ("a:\n  010: b\n", "bench.yaml:2: 010: must be written 8, or in quotes: so it is read"),
        ("0x10: a\n", "bench.yaml:1: 0x10: must be written 16, or in quotes: so it is read"),
    ],
)
def test_what_would_grow_or_be_lost_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "bench.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=said):
        read_yaml(file)
