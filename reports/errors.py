# SPDX-License-Identifier: Apache-2.0
"""Errors of the reports package: one tree, so that a caller can catch all of them at once."""


class ReportError(Exception):
    """Say that the reports package cannot do what it was asked to do."""


class RecordError(ReportError, ValueError):
    """Say that data do not obey the schema of a record, a manifest or a tool's answer."""


class RunFolderError(ReportError):
    """Say that a run folder cannot be made, written, read or finalised."""


class RequirementsError(ReportError):
    """Say that a file of requirements cannot be read, or that two of them contradict each other."""


class MissingCapabilityError(ReportError):
    """Say that something of this machine is missing, and how to get it."""

    exit_code = 3
