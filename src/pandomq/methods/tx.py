"""The methods of classes confirm (85) and tx (90): two ways to learn that a publish arrived."""

from pandomq.methods.layout import Bit, Method, method


@method(85, 10, synchronous=True)
class ConfirmSelect(Method, frozen=True):
    no_wait: Bit = False


@method(85, 11)
class ConfirmSelectOk(Method, frozen=True):
    pass


@method(90, 10, synchronous=True)
class TxSelect(Method, frozen=True):
    pass


@method(90, 11)
class TxSelectOk(Method, frozen=True):
    pass


@method(90, 20, synchronous=True)
class TxCommit(Method, frozen=True):
    pass


@method(90, 21)
class TxCommitOk(Method, frozen=True):
    pass


@method(90, 30, synchronous=True)
class TxRollback(Method, frozen=True):
    pass


@method(90, 31)
class TxRollbackOk(Method, frozen=True):
    pass
