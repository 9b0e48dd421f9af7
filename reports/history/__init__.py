# SPDX-License-Identifier: Apache-2.0
"""What the history says of a run."""
