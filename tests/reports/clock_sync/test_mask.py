# SPDX-License-Identifier: Apache-2.0
"""Masks: what stands in the files, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.clock_sync.mask import FOLDER, load_mask, mask_names
from reports.errors import RecordError

HEADER = "# name: test\n# source: none\nquantity,tau_above_s,tau_to_s,limit_ns,slope_ns_per_s\n"


def test_all_masks_of_the_project_can_be_read() -> None:
    assert set(mask_names()) == {
        "g8272-prtc-a", "g8272-prtc-b",
        "g8273-2-class-a", "g8273-2-class-b", "g8273-2-class-c", "g8273-2-class-d",
        "ieee-802-1as", "paper-10us", "paper-40us",
    }  # fmt: skip
    for name in mask_names():
        mask = load_mask(name)
        assert mask.source
        assert mask.segments
        assert "\n# checked: " in (FOLDER / f"{name}.csv").read_text()


@pytest.mark.parametrize(
    ("quantity", "tau_s", "limit_ns"),
    [
        ("mtie", 0.1, None),
        ("mtie", 1, 25.275),
        ("mtie", 273, 100.075),
        ("mtie", 273.01, 100),
        ("mtie", 1e6, 100),
        ("tdev", 100, 3),
        ("tdev", 500, 15),
        ("tdev", 1000, 30),
        ("tdev", 10_000, 30),
        ("tdev", 10_001, None),
    ],
)
def test_prtc_a(quantity: str, tau_s: float, limit_ns: float | None) -> None:
    found = load_mask("g8272-prtc-a").limit_at(quantity, tau_s)  # type: ignore[arg-type]
    assert found == (None if limit_ns is None else pytest.approx(limit_ns))


@pytest.mark.parametrize(
    ("quantity", "tau_s", "limit_ns"),
    [
        ("mtie", 54.5, 39.9875),
        ("mtie", 55, 40),
        ("tdev", 100, 1),
        ("tdev", 200, 2),
        ("tdev", 500, 5),
        ("tdev", 1e5, 5),
    ],
)
def test_prtc_b(quantity: str, tau_s: float, limit_ns: float) -> None:
    found = load_mask("g8272-prtc-b").limit_at(quantity, tau_s)  # type: ignore[arg-type]
    assert found == pytest.approx(limit_ns)


@pytest.mark.parametrize(
    ("name", "limits"),
    [("a", (100, 50, 40, 4)), ("b", (70, 20, 40, 4)), ("c", (30, 10, 10, 2))],
)
def test_the_classes_of_g8273_2(name: str, limits: tuple[int, ...]) -> None:
    mask = load_mask(f"g8273-2-class-{name}")
    assert mask.quantities == ("max_abs_te", "cte", "dte_l_mtie", "dte_l_tdev")
    assert tuple(segment.limit_ns for segment in mask.segments) == limits
    assert mask.limit_at("dte_l_mtie", 1000.5) is None


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("mtie,0.1,100,-5,0\n", r":4: limit_ns: \"-5\"; allowed: a number from 0 to"),
        ("mtie,0.1,100,nan,0\n", r":4: limit_ns: \"nan\""),
        ("mtie,0.1,100,0,0\n", r":4: limit_ns: 0 without a slope"),
        ("mtie,0.1,100,1e99,0\n", r":4: limit_ns"),
        ("mtie,0.1,0.1,5,0\n", r":4: tau_to_s: 0.1; allowed: more than tau_above_s"),
        ("mtie,0.1,-inf,5,0\n", r":4: tau_to_s"),
        ("mtie,x,100,5,0\n", r":4: tau_above_s: \"x\""),
        ("hdev,0.1,100,5,0\n", r":4: quantity: \"hdev\"; allowed: max_abs_te, max_abs_tel, cte, mtie"),
        ("cte,0.1,100,5,0\n", r":4: tau_above_s, tau_to_s, slope_ns_per_s: cte has none"),
        ("mtie,0.1,100,5\n", r":4: 4 fields; need 5"),
        ("mtie,0.1,100,5,0\nmtie,99,200,5,0\n", r":5: tau_above_s: 99 of mtie overlaps"),
        ("cte,,,5,0\ncte,,,6,0\n", r":5: tau_above_s"),
        ("", r":4: no limit"),
    ],
)
def test_bad_rows_are_refused(tmp_path: Path, rows: str, said: str) -> None:
    file = tmp_path / "bad.csv"
    file.write_text(HEADER + rows)
    with pytest.raises(RecordError, match=said):
        load_mask(file)


def test_bad_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "bad.csv"
    for text, said in (
        (HEADER.replace("# source: none\n", ""), "source: missing"),
        (HEADER.replace("# name: test\n", "# name:\n"), "name: missing"),
        (HEADER.replace("limit_ns", "limit"), "header: need quantity"),
        ("# name: a\n# source: b\n", "header: need quantity"),
    ):
        file.write_text(text)
        with pytest.raises(RecordError, match=said):
            load_mask(file)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(RecordError, match="cannot be read"):
        load_mask(file)
    with pytest.raises(RecordError, match="known masks: g8272-prtc-a"):
        load_mask("no-such-mask")
