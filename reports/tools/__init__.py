# SPDX-License-Identifier: Apache-2.0
"""What native tools answer, and what the machine took while they ran."""
