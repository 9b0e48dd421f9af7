# SPDX-License-Identifier: Apache-2.0
"""Whether the pages in a run folder are what its data gives, where this installation has made them."""

from __future__ import annotations

from pathlib import Path

from reports.page.render import PAGE, render_pages
from reports.rejudge.seal import pages_made_by
from reports.run.seal import made_by


def pages_differ(run: Path) -> tuple[list[str], str]:
    """Render the pages of a run again and compare.

    Commit and versions of what renders them, as the run's seal has them, have to be those of here.

    Returns:
        What differs, one line a page; and why nothing was compared, in words; empty: it was.

    Raises:
        ReportError: A page cannot be rendered.
    """
    (found, folder), here = pages_made_by(run), made_by()
    if found is None:
        return [], "pages not compared: what made them is not sealed"
    if found != here or not here["commit"] or here["commit"].endswith("-dirty"):
        words = ", ".join(f"{name} {value or 'unknown'}" for name, value in found.items())
        return [], f"pages not compared: made by {words}"
    if folder != run.resolve().name:
        return [], f"pages not compared: they name their folder, which was {folder}"
    if not (run / PAGE).is_file():
        return [], f"pages not compared: the run has no {PAGE}"
    pages = render_pages(run)  # one that has gone is named by the seal
    return [
        f"{name}: not what the data of the run gives"
        for name, text in pages.items()
        if (run / name).is_file() and (run / name).read_bytes() != text.encode()
    ], ""
