"""How a failed command ends: one line on standard error, and an exit code for scripts.

0 is success, 1 is a rejection by a broker or an error on this machine, 2 is wrong use, 3 means that no broker answered.
"""


class Failure(Exception):
    exit_code = 1


class RequestRejected(Failure):
    """The request was rejected: by a broker, with HTTP's status, or by this machine."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class WrongUse(Failure):
    """An invalid command line or configuration."""

    exit_code = 2


class NoBroker(Failure):
    exit_code = 3
