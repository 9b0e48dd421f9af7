# SPDX-License-Identifier: Apache-2.0
"""Who had the time of messages that are late."""
