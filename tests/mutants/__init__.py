# SPDX-License-Identifier: Apache-2.0
"""Faults put into the code on purpose: does the gate find each?"""
