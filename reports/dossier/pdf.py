# SPDX-License-Identifier: Apache-2.0
"""From a page in HTML to PDF/A-3b, tagged, with attachments: the same bytes for the same input.

Nothing is read from the clock or the network, and no file besides the fonts. What comes from WeasyPrint,
Pango, HarfBuzz or the fonts differs only where those packages do.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from io import BytesIO
from typing import Any, Literal

from reports.errors import ReportError
from reports.record.measurement import parse_utc

FONTS = ("DejaVu Sans", "DejaVu Sans Mono")
"""Families that the pages are set in, and that must be installed."""

_FONT_PACKAGES = "fonts-dejavu-core and fonts-dejavu-extra"
_VARIANT = "pdf/a-3b"
_SCHEME = "attachment"
_APPEND_ONLY = 3  # ISO 32000-1, table 219: made for signatures, to be saved by appending alone
_NO_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff]")

_weasyprint: Any = import_module("weasyprint")  # has no types
_urls: Any = import_module("weasyprint.urls")


class PdfError(ReportError):
    """Say that a PDF cannot be made or read; names what is wrong."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file inside the PDF.

    Attributes:
        name: File name.
        data: Content.
        media_type: Such as `application/json`.
        description: What it is, for the reader's list of attachments.
        relationship: What it is to the pages (ISO 32000-2, 7.11.3): `Data` is what they were made from,
            `Source` the document itself in another format, `Supplement` more of the same.
    """

    name: str
    data: bytes
    media_type: str
    description: str
    relationship: Literal["Source", "Data", "Alternative", "Supplement"]


@dataclass(frozen=True, slots=True)
class Properties:
    """What the PDF says of itself.

    Attributes:
        identifier: The document's own id; the file's identifier follows from it.
        title: Title, shown by readers instead of the file name.
        subject: One line about the content.
        author: Who made it; empty: not said.
        keywords: Words to find it by.
        time_utc: RFC 3339 time that counts as that of its creation; part of the content, never now.
    """

    identifier: str
    title: str
    subject: str
    author: str
    keywords: tuple[str, ...]
    time_utc: str


class _AttachmentFetcher(_urls.URLFetcher):  # type: ignore[misc]
    """Give out the attachments by their names, and nothing else: no file, no network."""

    def __init__(self, attachments: Sequence[Attachment]) -> None:
        super().__init__(allowed_protocols=(_SCHEME,), allow_redirects=False)  # pyright: ignore[reportUnknownMemberType]
        self._by_url = {_url(number): one for number, one in enumerate(attachments)}

    def fetch(self, url: str, headers: object = None) -> object:
        """Return an attachment; raises ValueError for everything else."""
        del headers
        if url not in self._by_url:
            raise ValueError(f"{url}: the pages may not load anything")
        found = self._by_url[url]
        return _urls.URLFetcherResponse(url, found.data, {"Content-Type": found.media_type})


def _url(number: int) -> str:
    return f"{_SCHEME}:{number}"


class _Complaints(logging.Handler):
    """Keep what WeasyPrint says while it works."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.errors: list[str] = []
        self.warnings: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one message."""
        kept = self.errors if record.levelno >= logging.ERROR else self.warnings
        kept.append(record.getMessage())


@contextmanager
def _complaints() -> Generator[_Complaints]:
    """Take WeasyPrint's messages instead of having them printed."""
    logger = logging.getLogger("weasyprint")
    before = (list(logger.handlers), logger.propagate)
    kept = _Complaints()
    logger.handlers, logger.propagate = [kept], False
    try:
        yield kept
    finally:
        logger.handlers, logger.propagate = before


def render_pdf(page: str, properties: Properties, attachments: Sequence[Attachment] = ()) -> bytes:
    """Return a page in HTML as PDF/A-3b.

    A character that no installed font can show becomes its code point in brackets.

    Args:
        page: A whole HTML document with its styles; it may refer to nothing outside itself.
        properties: What the PDF says of itself.
        attachments: Files to put into it; their dates are that of the document.

    Raises:
        PdfError: A link leads nowhere, something was to be loaded, or the fonts are not installed.
    """
    text = _NO_XML.sub("\ufffd", page)
    pdf, missing = _render(text, properties, attachments)
    if missing:
        pattern = re.compile("[" + re.escape("".join(map(chr, sorted(missing)))) + "]")
        text = pattern.sub(lambda found: f"[U+{ord(found[0]):04X}]", text)
        pdf, missing = _render(text, properties, attachments)
        assert not missing
    return pdf


def _render(
    page: str, properties: Properties, attachments: Sequence[Attachment]
) -> tuple[bytes, frozenset[int]]:
    """Return the PDF, and the code points that no font has a glyph for."""
    fetcher = _AttachmentFetcher(attachments)
    time = parse_utc(properties.time_utc)
    files = [
        _weasyprint.Attachment(
            url=_url(number), url_fetcher=fetcher, name=one.name, description=one.description,
            created=time, modified=time, relationship=one.relationship,
        )
        for number, one in enumerate(attachments)
    ]  # fmt: skip
    options: dict[str, Any] = {
        "pdf_variant": _VARIANT,
        "pdf_tags": True,
        "pdf_identifier": hashlib.sha256(properties.identifier.encode()).hexdigest()[:32].encode(),
        "attachments": files,
    }
    with _complaints() as complaints:
        html = _weasyprint.HTML(string=page, url_fetcher=fetcher, base_url=f"{_SCHEME}:page")
        document: Any = html.render(**options)
        _set_metadata(document.metadata, properties)
        pdf: bytes = document.write_pdf(finisher=_finish, **options)
    if complaints.errors:
        raise PdfError(f"the dossier's pages: {complaints.errors[0]}")
    fonts: list[Any] = list(document.fonts.values())
    foreign = sorted({font.family for font in fonts} - set(FONTS))
    missing = frozenset[int]().union(*(font.missing for font in fonts))
    if foreign and not _has_fonts(fonts):
        raise PdfError(f"the fonts {', '.join(FONTS)} are not installed: packages {_FONT_PACKAGES}")
    return pdf, missing


def _has_fonts(fonts: Sequence[Any]) -> bool:
    """Say whether the pages' own family is among those that were used."""
    return any(font.family == FONTS[0] for font in fonts)


def _set_metadata(metadata: Any, properties: Properties) -> None:
    stamp = parse_utc(properties.time_utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    metadata.title = properties.title
    metadata.description = properties.subject
    metadata.authors = [properties.author] if properties.author else []
    metadata.keywords = list(properties.keywords)
    metadata.generator = "Benchwright"
    metadata.created = metadata.modified = stamp


def _finish(_document: object, pdf: Any) -> None:
    """Let readers open the bookmarks beside the pages, and signatures be added without another change.

    Objects stand in the file one by one: WeasyPrint would put all of them into one compressed object stream,
    whose table pyHanko reads anew for each of its thousands of objects, minutes for a whole dossier.
    """
    pydyf: Any = import_module("pydyf")
    write: Callable[[Any, bytes, bytes, bool], None] = pdf.write

    def write_one_by_one(output: Any, version: bytes, identifier: bytes, compress: bool) -> None:
        del compress
        write(output, version, identifier, False)

    pdf.write = write_one_by_one
    form = pydyf.Dictionary({"Fields": pydyf.Array(), "SigFlags": _APPEND_ONLY})
    pdf.add_object(form)
    pdf.catalog["AcroForm"] = form.reference
    pdf.catalog["PageMode"] = "/UseOutlines"


def extract_attachment(pdf: bytes, name: str) -> bytes:
    """Return the content of an attachment; raises PdfError where there is none, or the file is no PDF."""
    reader_module: Any = import_module("pyhanko.pdf_utils.reader")
    try:
        root: Any = reader_module.PdfFileReader(BytesIO(pdf)).root
        names: list[Any] = list(root["/Names"]["/EmbeddedFiles"]["/Names"])
        files = {str(key): entry for key, entry in zip(names[::2], names[1::2], strict=True)}
        entry = files[name]
        data: bytes = entry.get_object()["/EF"]["/F"].data
    except KeyError as error:
        raise PdfError(f"the PDF has no attachment {name}") from error
    except Exception as error:  # whatever a damaged file makes the reader stumble over
        raise PdfError(f"the PDF cannot be read: {error}") from error
    return data
