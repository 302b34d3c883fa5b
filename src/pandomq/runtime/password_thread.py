"""Verifies passwords against their slow hashes in a thread, so that the loop is not blocked."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from pandomq.node.clients.logins import PasswordCheck

log = logging.getLogger("pandomq")


class PasswordThread:
    __slots__ = ("_loop", "_thread")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        # One thread: a flood of wrong passwords uses one core at most, and only delays other logins.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="password")

    def ask(self, question: PasswordCheck, on_answer: Callable[[bool], None]) -> None:
        """Calls `on_answer` in the loop."""

        def answered(answer: asyncio.Future[bool]) -> None:
            if answer.cancelled():
                return
            failure = answer.exception()
            if failure is not None:
                # Other questions wait behind this one, so it has to be answered. The exception's text might contain the
                # hash.
                log.error(
                    "the password of user '%s' could not be verified, so the login is refused: %s",
                    question.user,
                    type(failure).__name__,
                )
            on_answer(failure is None and answer.result())

        self._loop.run_in_executor(self._thread, question.fits).add_done_callback(answered)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
