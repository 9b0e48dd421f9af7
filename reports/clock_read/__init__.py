# SPDX-License-Identifier: Apache-2.0
"""What reading a clock costs."""
