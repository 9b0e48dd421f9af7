# SPDX-License-Identifier: Apache-2.0
"""The night shift, `make nightly`: what the gate leaves out, part by part (docs/nightly.md)."""
