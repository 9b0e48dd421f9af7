# SPDX-License-Identifier: Apache-2.0
"""The dossier is PDF/A-3b by veraPDF, signed or not; a PDF that is none fails there.

`make test-pdfa` runs these; so does `make test` where Java is there and veraPDF can be had.
"""

from __future__ import annotations

import os
import subprocess
import xml.etree.ElementTree as ET
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter

from reports.dossier.signature import load_signer, sign
from tests.reports.dossier.conftest import DossierSample
from tests.reports.dossier.keys import make_person

pytestmark = pytest.mark.slow

FETCH = Path(__file__).with_name("verapdf") / "fetch.sh"
PROGRAM = "org.verapdf.apps.GreenfieldCliWrapper"
REQUIRED = "BENCHWRIGHT_REQUIRE_VERAPDF"


@pytest.fixture(scope="module")
def jars() -> Path:
    done = subprocess.run([FETCH], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines()[-1]
        if os.environ.get(REQUIRED):
            pytest.fail(reason)
        pytest.skip(f"{reason}; make test-pdfa needs it")
    return Path(done.stdout.strip().splitlines()[-1])


def without_output_intent(pdf: bytes) -> bytes:
    """Return a PDF whose colours mean nothing any more."""
    writer: Any = IncrementalPdfFileWriter(BytesIO(pdf))
    del writer.root["/OutputIntents"]
    writer.update_root()
    out = BytesIO()
    writer.write(out)
    return out.getvalue()


def test_it_is_pdf_a_3b_signed_or_not_and_a_broken_one_is_not(
    jars: Path, written: DossierSample, tmp_path: Path
):
    plain = written.files[0].read_bytes()
    person = make_person(tmp_path / "keys", "A. Operator", b"phrase")
    signed = sign(plain, load_signer(person.p12, None, b"phrase"), "approved")
    files = {"plain": plain, "signed": signed, "broken": without_output_intent(plain)}
    for name, data in files.items():
        (tmp_path / f"{name}.pdf").write_bytes(data)
    paths = [str(tmp_path / f"{name}.pdf") for name in files]
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*", PROGRAM, "-f", "3b", *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    jobs = ET.fromstring(done.stdout).findall("jobs/job")  # noqa: S314
    verdicts = {
        Path(job.findtext("item/name", "")).stem: [
            (report.get("isCompliant"), [rule.get("clause") for rule in report.findall("details/rule")])
            for report in job.findall("validationReport")
        ]
        for job in jobs
    }
    assert verdicts["plain"] == [("true", [])]
    assert verdicts["signed"] == [("true", [])]
    ((compliant, clauses),) = verdicts["broken"]
    assert compliant == "false"
    assert "6.2.4.3" in clauses, "device colours without an output intent (ISO 19005-3)"
