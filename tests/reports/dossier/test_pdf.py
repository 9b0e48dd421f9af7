# SPDX-License-Identifier: Apache-2.0
"""The dossier as PDF: the same bytes anywhere, complete, with its data inside, and loading nothing."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
from pathlib import Path

import pytest

from reports.dossier.figures import draw_figures
from reports.dossier.model import to_dossier_bytes
from reports.dossier.page import ATTACHMENT, dossier_page, format_limit, sections
from reports.dossier.pdf import Attachment, PdfError, Properties, extract_attachment, render_pdf
from reports.record.measurement import Limit
from tests.reports.dossier.conftest import DossierSample

PROPERTIES = Properties("BD-1", "Title (x)", "Subject", "", ("a", "b"), "2026-11-22T00:00:00Z")
HEAD = '<!DOCTYPE html><html lang="en"><head><title>t</title></head><body style="font-family: DejaVu Sans">'


def page(body: str) -> str:
    return f"{HEAD}{body}</body></html>"


def text_of(pdf: Path) -> str:
    done = subprocess.run(["pdftotext", "-layout", str(pdf), "-"], capture_output=True, check=True)
    return re.sub(r"\s+", " ", done.stdout.decode())


@pytest.mark.slow
def test_two_renderings_in_two_processes_are_identical(written: DossierSample):
    assert written.files[0].read_bytes() == written.files[1].read_bytes()


def test_the_data_lie_inside_as_they_were_gathered(written: DossierSample):
    assert extract_attachment(written.files[0].read_bytes(), ATTACHMENT) == to_dossier_bytes(written.dossier)
    with pytest.raises(PdfError, match=r"no attachment other\.json"):
        extract_attachment(written.files[0].read_bytes(), "other.json")


def test_every_page_has_the_id_and_its_number_of_all(written: DossierSample):
    done = subprocess.run(
        ["pdftotext", "-layout", str(written.files[0]), "-"], capture_output=True, check=True
    )
    pages = done.stdout.decode().split("\f")[:-1]
    assert len(pages) > 10
    for number, text in enumerate(pages, start=1):
        assert written.dossier.id in text, number
        assert f"page {number} / {len(pages)}" in text
        assert number == 1 or "SIMULATED" in text


def test_the_verdict_is_told_in_words_and_every_requirement_is_listed(written: DossierSample):
    text = text_of(written.files[0])
    assert "✖ NOT ACCEPTED" in text
    assert "untested on hardware" in text
    for row in written.dossier.targets[0].requirements:
        assert row.id in text
    for section in sections():
        assert f"{section.number} {section.title}" in text


def test_bookmarks_lead_to_every_section(written: DossierSample):
    done = subprocess.run(
        ["pdftohtml", "-xml", "-i", "-stdout", str(written.files[0])], capture_output=True, check=True
    )
    found = done.stdout.decode()
    for section in sections():
        assert re.search(rf'<item page="\d+">{section.number}\s+{re.escape(section.title)}', found)


def test_it_says_what_it_is_and_when_by_its_runs(written: DossierSample):
    command = ["pdfinfo", "-isodates", str(written.files[0])]
    done = subprocess.run(command, capture_output=True, check=True, env={**os.environ, "TZ": "UTC"})
    said = done.stdout.decode()
    assert re.search(rf"Title: +.*\({written.dossier.id}\)", said)
    assert re.search(r"Tagged: +yes", said)
    assert said.count(f"{written.dossier.date}T00:00:00") == 2


def test_all_fonts_are_embedded(written: DossierSample):
    done = subprocess.run(["pdffonts", str(written.files[0])], capture_output=True, check=True)
    rows = done.stdout.decode().splitlines()[2:]
    assert rows
    for row in rows:
        assert "DejaVu" in row
        assert re.search(r"\s(yes) (yes) (yes)\s", row), row


def test_another_dossier_has_another_identifier_and_the_same_one_the_same():
    first, again = (render_pdf(page("<p>x</p>"), PROPERTIES) for _ in range(2))
    other = render_pdf(page("<p>x</p>"), dataclasses.replace(PROPERTIES, identifier="BD-2"))
    assert first == again
    assert first != other


def test_an_attachment_keeps_its_name_type_date_and_relationship():
    attached = Attachment("data.json", b'{"a": 1}', "application/json", "The data", "Data")
    pdf = render_pdf(page("<p>x</p>"), PROPERTIES, [attached])
    assert extract_attachment(pdf, "data.json") == attached.data
    assert b"/application#2fjson" in pdf


@pytest.mark.parametrize(
    "body",
    [
        '<img src="file:///etc/hostname" alt="x">',
        '<img src="http://127.0.0.1:1/x.png" alt="x">',
        '<a href="#nowhere">x</a>',
    ],
)
def test_what_would_load_something_or_leads_nowhere_is_refused(body: str):
    with pytest.raises(PdfError):
        render_pdf(page(body), PROPERTIES)


def test_a_character_without_glyph_becomes_its_code_point(tmp_path: Path):
    file = tmp_path / "x.pdf"
    file.write_bytes(render_pdf(page("<p>a\U000f1234b \x01c</p>"), PROPERTIES))
    assert "a[U+F1234]b �c" in text_of(file)


def test_what_is_no_pdf_is_said_to_be_none():
    with pytest.raises(PdfError, match="cannot be read"):
        extract_attachment(b"%PDF-1.7\nnothing", "x")


def test_what_comes_from_outside_cannot_become_markup(written: DossierSample):
    evil = '"><script>alert(1)</script>'
    changed = dataclasses.replace(written.dossier, title=evil, date="2026-01-01")
    html = dossier_page(changed, draw_figures(changed, {written.run.run_id: written.run.path}))
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)" in html


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (Limit(10_000_000, None, ""), "≤ 10 ms"),
        (Limit(None, 0, ""), "≥ 0 ns"),
        (Limit(10_000, -10_000, ""), "±10 µs"),
        (Limit(5, 2, ""), "2 ns … 5 ns"),
    ],
)
def test_limits_read_as_a_formula(limit: Limit, text: str):
    assert format_limit(limit, "ns") == text
