# SPDX-License-Identifier: Apache-2.0
"""Look at this machine: one module a subject. They need nothing but Python itself, so that they run before set-up."""
