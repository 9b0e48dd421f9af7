# SPDX-License-Identifier: Apache-2.0
"""Pages of many tests show the same figures: each is drawn once."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterator
from functools import wraps

import pytest

from reports.daq_replay import section

FIGURES = ("figure_maxima", "figure_distributions", "figure_lateness", "figure_clocks")


@pytest.fixture(scope="session", autouse=True)
def figures_drawn_once() -> Iterator[None]:
    """Give the page a figure that it has drawn before of the same data again.

    That the same data always give the same figure is tested against another process, which draws its own.
    """
    drawn: dict[bytes, str] = {}

    def once(draw: Callable[..., str]) -> Callable[..., str]:
        @wraps(draw)
        def draw_once(*arguments: object) -> str:
            key = hashlib.sha256(pickle.dumps((draw.__name__, arguments))).digest()
            if key not in drawn:
                drawn[key] = draw(*arguments)
            return drawn[key]

        return draw_once

    with pytest.MonkeyPatch.context() as patch:
        for name in FIGURES:
            patch.setattr(section, name, once(getattr(section, name)))
        yield
