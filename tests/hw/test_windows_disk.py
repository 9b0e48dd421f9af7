# SPDX-License-Identifier: Apache-2.0
"""Where a virtual Windows machine's disk lies: in memory, where everybody may write."""

from __future__ import annotations

from hw.virtual.windows import MEMORY, new_disk


def test_nobody_can_foresee_where_a_disk_will_lie() -> None:
    """A link that stood there before would lead root into a stranger's folder; `boot` makes it, or fails."""
    names = {new_disk("bw-virtual-windows").name for _ in range(100)}
    assert len(names) == 100
    assert all(name.startswith("bw-virtual-windows-") and len(name) > 30 for name in names)
    assert new_disk("x").parent == MEMORY
