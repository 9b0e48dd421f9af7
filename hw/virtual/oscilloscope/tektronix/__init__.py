# SPDX-License-Identifier: Apache-2.0
"""The dialect of the Tektronix 4, 5 and 6 Series MSO, after their programmer manuals."""
