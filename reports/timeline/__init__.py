# SPDX-License-Identifier: Apache-2.0
"""One timeline: where the events of every machine lie in TAI, and how sure that is."""
