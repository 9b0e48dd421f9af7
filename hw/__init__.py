# SPDX-License-Identifier: Apache-2.0
"""The bench: its model and file, its protocols, and the drivers that act on nodes, networks and guests."""
