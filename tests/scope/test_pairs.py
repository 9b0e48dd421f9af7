# SPDX-License-Identifier: Apache-2.0
"""Pairs of edges: which belong together, and why a reference edge has no partner."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from scope.edges import Edges
from scope.errors import WaveformError
from scope.pairs import PairSettings, Polarity, pair_edges

RISING = 1
FALLING = 0
SPAN_S = 100.0

Timed = tuple[int, float, int]


def edges(
    *found: Timed, runts: tuple[Timed, ...] = (), frames: int = 3, faults: tuple[int, ...] = ()
) -> Edges:
    """Return edges at (frame, time in s, direction); each frame lasts 100 s."""

    def column(rows: tuple[Timed, ...], place: int, kind: type[Any]) -> NDArray[Any]:
        return np.array([row[place] for row in rows], kind)

    return Edges(
        frame=column(found, 0, np.int64),
        time_s=column(found, 1, np.float64),
        rising=column(found, 2, np.bool_),
        slope_v_s=np.ones(len(found)),
        curvature_v_s2=np.zeros(len(found)),
        phase=np.zeros(len(found)),
        runt_frame=column(runts, 0, np.int64),
        runt_time_s=column(runts, 1, np.float64),
        runt_rising=column(runts, 2, np.bool_),
        start_s=np.zeros(frames),
        end_s=np.full(frames, SPAN_S),
        at_border=0,
        faults=dict.fromkeys(faults, "clipped"),
    )


def test_delay_is_other_less_reference() -> None:
    found = pair_edges(edges((0, 10, RISING)), edges((0, 13, RISING)), PairSettings())
    assert found.delay_s.tolist() == [3.0]
    found = pair_edges(edges((0, 10, RISING)), edges((0, 8, RISING)), PairSettings())
    assert found.delay_s.tolist() == [-2.0]


def test_partners_lie_in_one_frame() -> None:
    found = pair_edges(edges((0, 99, RISING)), edges((1, 1, RISING)), PairSettings())
    assert not len(found.delay_s)
    assert (found.missing, found.extra) == (1, 1)


def test_nearest_edge_is_the_partner_and_has_only_one() -> None:
    found = pair_edges(
        edges((0, 10, RISING), (0, 20, RISING), (0, 30, RISING)),
        edges((0, 12, RISING), (0, 28, RISING)),
        PairSettings(within_s=20.0),
    )
    assert found.reference.tolist() == [0, 2]
    assert found.other.tolist() == [0, 1]
    assert found.delay_s.tolist() == [2.0, -2.0]
    assert found.missing + found.at_border == 1


@pytest.mark.parametrize(
    ("reference", "other", "delays"),
    [
        (Polarity.RISING, Polarity.RISING, [5.0]),
        (Polarity.FALLING, Polarity.FALLING, [4.0]),
        (Polarity.RISING, Polarity.FALLING, [14.0]),
        (Polarity.EITHER, Polarity.EITHER, [5.0, 4.0]),
    ],
)
def test_polarity_says_which_edges_count(reference: Polarity, other: Polarity, delays: list[float]) -> None:
    found = pair_edges(
        edges((0, 10, RISING), (0, 20, FALLING)),
        edges((0, 15, RISING), (0, 24, FALLING)),
        PairSettings(reference, other),
    )
    assert found.delay_s.tolist() == delays


def test_partner_is_looked_for_where_it_is_expected() -> None:
    reference = edges((0, 10, RISING), (0, 20, RISING), (0, 30, RISING))
    other = edges((0, 21, RISING), (0, 31, RISING), (0, 41, RISING))
    found = pair_edges(reference, other, PairSettings(expected_s=10.0, within_s=3.0))
    assert found.delay_s.tolist() == [11.0, 11.0, 11.0]
    near = pair_edges(reference, other, PairSettings(within_s=3.0))
    assert near.delay_s.tolist() == [1.0, 1.0]


def test_missing_partner_runt_and_border_are_told_apart() -> None:
    reference = edges((0, 50, RISING), (1, 50, RISING), (2, 98, RISING))
    other = edges(runts=((1, 52, RISING),))
    found = pair_edges(reference, other, PairSettings(within_s=5.0))
    assert (found.missing, found.runt, found.at_border) == (1, 1, 1)


def test_runt_the_other_way_is_no_partner() -> None:
    found = pair_edges(edges((0, 50, RISING)), edges(runts=((0, 50, FALLING),)), PairSettings())
    assert (found.missing, found.runt) == (1, 0)


def test_runt_elsewhere_does_not_excuse_a_missing_edge() -> None:
    other = edges(runts=((0, 80, RISING), (1, 50, RISING)))
    found = pair_edges(edges((0, 50, RISING)), other, PairSettings(within_s=5.0))
    assert (found.missing, found.runt) == (1, 0)


def test_without_a_window_a_partner_outside_the_record_is_missing() -> None:
    found = pair_edges(edges((0, 98, RISING)), edges(), PairSettings())
    assert (found.missing, found.at_border) == (1, 0)


def test_frames_with_a_fault_in_either_channel_do_not_count() -> None:
    reference = edges((0, 50, RISING), (1, 50, RISING), (2, 50, RISING), faults=(0,))
    other = edges((0, 51, RISING), (2, 51, RISING), faults=(1,))
    found = pair_edges(reference, other, PairSettings())
    assert found.delay_s.tolist() == [1.0]
    assert (found.missing, found.extra) == (0, 0)


def test_many_frames_keep_their_delays_exact() -> None:
    rng = np.random.default_rng(8)
    delays = rng.uniform(-1, 1, 5000)
    reference = edges(*((k, 50.0, RISING) for k in range(5000)), frames=5000)
    other = edges(*((k, 50.0 + d, RISING) for k, d in enumerate(delays)), frames=5000)
    found = pair_edges(reference, other, PairSettings())
    assert found.delay_s == pytest.approx(delays, abs=1e-12)


def test_channels_with_different_numbers_of_frames_are_refused() -> None:
    with pytest.raises(WaveformError, match="3 frames of the reference, 2 of the other"):
        pair_edges(edges(), edges(frames=2), PairSettings())


def test_window_that_is_not_positive_is_refused() -> None:
    with pytest.raises(WaveformError, match="within_s"):
        PairSettings(within_s=0.0)
