# SPDX-License-Identifier: Apache-2.0
"""Property tests of this folder: the same examples in every run, no judgement by wall-clock time."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("reports", deadline=None, derandomize=True, database=None)
settings.load_profile("reports")
