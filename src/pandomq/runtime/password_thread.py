"""Where passwords are held against their slow hashes: outside the loop, which has other things to do."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from pandomq.node.logins import Question

log = logging.getLogger("pandomq")


class PasswordThread:
    __slots__ = ("_loop", "_thread")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        # One thread: a flood of wrong passwords takes one core at most, and waits in line for itself.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="password")

    def ask(self, question: Question, on_answer: Callable[[bool], None]) -> None:
        """`on_answer` is called in the loop."""

        def answered(answer: asyncio.Future[bool]) -> None:
            if answer.cancelled():
                return
            failure = answer.exception()
            if failure is not None:
                # Others wait behind this one, so that it has to be answered. What it says might hold the hash.
                log.error("a password could not be checked: %s", type(failure).__name__)
            on_answer(failure is None and answer.result())

        self._loop.run_in_executor(self._thread, question.fits).add_done_callback(answered)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
