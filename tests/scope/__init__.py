# SPDX-License-Identifier: Apache-2.0
"""Tests of waveforms, their analysis, and of the drivers of oscilloscopes."""
