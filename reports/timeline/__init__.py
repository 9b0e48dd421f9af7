# SPDX-License-Identifier: Apache-2.0
"""What machines did, on one axis of time."""
