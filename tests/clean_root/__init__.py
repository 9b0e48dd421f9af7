# SPDX-License-Identifier: Apache-2.0
"""The first commands in a minimal root of a Debian release: what they open has to be in a package list."""
