"""How a command ends when it cannot do what was asked: one line on standard error, and a code that scripts may rely on.

0 is success, 1 is a broker's or the machine's no, 2 is wrong use, 3 means that no broker answered.
"""


class Failure(Exception):
    exit_code = 1


class Refused(Failure):
    """The answer is no: a broker's, with HTTP's status, or this machine's."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class WrongUse(Failure):
    """What was typed or configured cannot be meant."""

    exit_code = 2


class NoBroker(Failure):
    exit_code = 3
