# SPDX-License-Identifier: Apache-2.0
"""The virtual bench disturbed on purpose: verdicts that must not be wrong, faults that must be seen."""
