# SPDX-License-Identifier: Apache-2.0
"""What delays a program, a module a fault: each looks through a trace and yields its findings."""
