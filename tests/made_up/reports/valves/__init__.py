# SPDX-License-Identifier: Apache-2.0
"""How late valves open."""
