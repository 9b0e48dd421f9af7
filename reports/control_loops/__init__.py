# SPDX-License-Identifier: Apache-2.0
"""Control loops: messages round a ring of machines, and what each stretch of the loop takes."""
