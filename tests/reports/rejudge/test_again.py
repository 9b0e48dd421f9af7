# SPDX-License-Identifier: Apache-2.0
"""The second judge finds what it knows of each capability, and takes a quantity from one of them alone."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from reports.rejudge import again


@pytest.fixture(autouse=True)
def asked_anew() -> Generator[None]:
    """Make it look for the capabilities again, in a test and behind it."""
    again.kinds.cache_clear()
    yield
    again.kinds.cache_clear()


def test_a_quantity_of_two_capabilities_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    first, *others = again.every()
    double = next(iter(first.quantities))
    both = (first, *others, again.Again({double: again.Kind("ns", ("p50",), ())}))
    monkeypatch.setattr(again, "every", lambda: both)
    with pytest.raises(ValueError, match=rf"^again\.py: {double}: two capabilities have this quantity$"):
        again.kinds()
