# SPDX-License-Identifier: Apache-2.0
"""Native tools and captures that run beside a measurement."""
