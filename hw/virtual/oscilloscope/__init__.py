# SPDX-License-Identifier: Apache-2.0
"""Virtual oscilloscopes: SCPI servers of two dialects on one analogue front end that digitises edges.

Nothing here is shared with the drivers: what the instruments answer is written from the vendors' text
(docs/virtual-oscilloscope.md names the source of each part), so that driver and instrument can disagree.
"""
