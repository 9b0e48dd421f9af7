# SPDX-License-Identifier: Apache-2.0
"""Keyword libraries: typed arguments and documentation; the modules beside this package do the work."""
