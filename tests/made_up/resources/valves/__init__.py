# SPDX-License-Identifier: Apache-2.0
"""How valves are opened."""
