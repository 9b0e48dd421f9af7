# SPDX-License-Identifier: Apache-2.0
"""Look at this machine: one module a subject. All but `bench` need Python alone, and run before set-up."""
