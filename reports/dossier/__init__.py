# SPDX-License-Identifier: Apache-2.0
"""The acceptance dossier: what a laboratory hands over, made from run folders alone."""
