# SPDX-License-Identifier: Apache-2.0
"""Build the wheel of bwtime: the package and the library that was built for this machine (PEP 517, PEP 427).

The library is what `BWTIME_LIBRARY` names, or else what `make setup` has built in this tree.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import sysconfig
import zipfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
VERSION_HEADER = HERE.parents[1] / "version.h"
BUILT = HERE.parents[2] / ".build" / "linux" / "traffic-gen" / "timeservice" / "libbwtime.so"
LIBRARY_NAMES = ("libbwtime.so", "bwtime.dll")
EPOCH = (1980, 1, 1, 0, 0, 0)
"""Date of all that is in the wheel: the same sources give the same bytes."""


def _version() -> str:
    found = re.search(r'^#define BW_VERSION "([^"]+)"', VERSION_HEADER.read_text(), re.MULTILINE)
    if found is None:
        raise RuntimeError(f"{VERSION_HEADER}: no version")
    return found.group(1)


def _library() -> Path:
    library = Path(os.environ.get("BWTIME_LIBRARY") or BUILT)
    if library.name not in LIBRARY_NAMES or not library.is_file():
        raise RuntimeError(f"{library}: no such library; BWTIME_LIBRARY names {' or '.join(LIBRARY_NAMES)}")
    return library


def _metadata() -> str:
    fields = {"Metadata-Version": "2.1", "Name": "bwtime", "Version": _version(), "License": "Apache-2.0"}
    return "".join(f"{key}: {value}\n" for key, value in (fields | {"Requires-Python": ">=3.9"}).items())


def build_wheel(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """Write the wheel and return its name."""
    del config_settings, metadata_directory
    version = _version()
    tag = f"py3-none-{re.sub(r'[-.]', '_', sysconfig.get_platform())}"
    name, info = f"bwtime-{version}-{tag}.whl", f"bwtime-{version}.dist-info"
    library = _library()
    files = {f"bwtime/{file.name}": file.read_bytes() for file in sorted((HERE / "bwtime").glob("*.py"))}
    files["bwtime/py.typed"] = b""
    files[f"bwtime/{library.name}"] = library.read_bytes()
    files[f"{info}/METADATA"] = _metadata().encode()
    wheel = f"Wheel-Version: 1.0\nGenerator: bwtime_build\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files[f"{info}/WHEEL"] = wheel.encode()
    record = f"{info}/RECORD"
    lines = [f"{path},sha256={_digest(content)},{len(content)}" for path, content in files.items()]
    files[record] = "".join(f"{line}\n" for line in [*lines, f"{record},,"]).encode()
    with zipfile.ZipFile(Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path, EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)
    return name


def build_sdist(sdist_directory: str, config_settings: dict[str, Any] | None = None) -> str:
    """Refuse: the library is built from the whole tree."""
    raise NotImplementedError("bwtime has no source distribution: it is built from Benchwright's tree")


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
