# SPDX-License-Identifier: Apache-2.0
"""What an experiment of many machines has left, as a page: schedule, conditions asked and achieved."""
