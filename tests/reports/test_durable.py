# SPDX-License-Identifier: Apache-2.0
"""Files that are replaced as a whole."""

from __future__ import annotations

import threading
from pathlib import Path

from reports.durable import replace_file

WRITERS = 8
TIMES = 50


def test_writers_of_one_file_do_not_meet(tmp_path: Path) -> None:
    """Each reader sees what one of them wrote; nobody's draft is another's."""
    path = tmp_path / "state"
    texts = {bytes([65 + writer]) * 5000 for writer in range(WRITERS)}
    done: list[bytes] = []

    def write(text: bytes) -> None:
        for _ in range(TIMES):
            replace_file(path, text)
            assert path.read_bytes() in texts
        done.append(text)

    threads = [threading.Thread(target=write, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(done) == texts
    assert list(tmp_path.iterdir()) == [path]
