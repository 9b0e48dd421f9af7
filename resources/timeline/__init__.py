# SPDX-License-Identifier: Apache-2.0
"""What machines did, recorded on them."""
