# SPDX-License-Identifier: Apache-2.0
"""Every device's own software latency, from round trips between them (docs/software-latency.md)."""
