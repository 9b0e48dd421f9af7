# SPDX-License-Identifier: Apache-2.0
"""What provisioning leaves different."""
