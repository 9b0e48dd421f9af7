# SPDX-License-Identifier: Apache-2.0
"""Targets provisioned again and again, and what differs then."""
