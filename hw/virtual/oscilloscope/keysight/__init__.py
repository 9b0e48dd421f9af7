# SPDX-License-Identifier: Apache-2.0
"""The dialect of Keysight InfiniiVision, after the Programmer's Guides of the 3000T and 4000 X-Series."""
