# SPDX-License-Identifier: Apache-2.0
"""Oscilloscopes and what is read from them: waveforms, times of edges, calibration, uncertainty.

Imports nothing of hw, resources or reports.
"""
