# SPDX-License-Identifier: Apache-2.0
"""What a path did to datagrams, from captures before and behind it, beside what was asked of it."""
