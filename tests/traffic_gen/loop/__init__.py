# SPDX-License-Identifier: Apache-2.0
"""Tests of components of experiments: bw-phase, and the libraries for programs."""
