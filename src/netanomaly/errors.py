"""The errors a person meets. Each knows the exit code the command line ends with."""

from __future__ import annotations


class NetanomalyError(Exception):
    """Base of every error the package raises on purpose: one line, for people."""

    exit_code = 1
    is_told = False
    """Whether another process tells it: one of many that have it."""


class ConfigError(NetanomalyError):
    """The configuration or the arguments are wrong. The message starts with the file or key."""

    exit_code = 2


class DataError(NetanomalyError):
    """The data are wrong. The message names file, row and column where there is one."""

    exit_code = 3


class BundleError(NetanomalyError):
    """A bundle is missing, damaged, or of a format this version does not read."""

    exit_code = 4


class TrainingError(NetanomalyError):
    """Training cannot go on: the loss or a gradient is not a finite number."""

    exit_code = 5


class EngineError(NetanomalyError):
    """Spark or Ray failed, and not because of the rows: no cluster was reached, workers were lost again and again."""

    exit_code = 6


class ProcessLost(NetanomalyError):
    """A process that trained together with this one has ended. What was saved is there to go on with."""

    exit_code = 5
