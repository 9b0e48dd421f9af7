# SPDX-License-Identifier: Apache-2.0
"""Keyword libraries: typed arguments and documentation; the work is done by the modules beside this package."""
