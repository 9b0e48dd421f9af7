# SPDX-License-Identifier: Apache-2.0
"""The adviser: finds the runs at which a series of results has changed. It never changes a verdict."""
