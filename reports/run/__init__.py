# SPDX-License-Identifier: Apache-2.0
"""The run folder: what a run leaves behind, what it was asked, and how it came out."""
