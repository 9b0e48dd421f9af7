# SPDX-License-Identifier: Apache-2.0
"""The measurement record: what it holds, how it is judged, and how it is written."""
