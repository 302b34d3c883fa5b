"""A broker process under observation: it has to live, to end cleanly, and to log no unhandled exception."""

from __future__ import annotations

import signal

from tests.support.process import BrokerProcess

LOG_TAIL_CHARS = 8000
KILL_TIMEOUT_S = 15.0

# The output of a program after an unhandled exception.
UNHANDLED_SIGNS = ("Traceback (most recent call last)", "exception was never retrieved", "Fatal Python error")


class BrokerFailed(AssertionError):
    """The broker ended by itself or with an error, or logged an unhandled exception."""


class WatchedBroker(BrokerProcess):
    _checked_chars = 0

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}/%2F"

    def check(self) -> None:
        """Raises if the broker ended, or logged an unhandled exception since the last check."""
        text = self.log_text()
        fresh, self._checked_chars = text[self._checked_chars :], len(text)
        if not self.alive:
            raise BrokerFailed(f"the broker ended by itself:\n{text[-LOG_TAIL_CHARS:]}")
        if any(sign in fresh for sign in UNHANDLED_SIGNS):
            raise BrokerFailed(f"the broker logged an unhandled exception:\n{fresh[-LOG_TAIL_CHARS:]}")

    def stop(self) -> int:
        """Asks it to end, as ^C does, and requires a clean exit."""
        code = super().stop()
        text = self.log_text()
        if code not in (0, -signal.SIGTERM) or any(sign in text[self._checked_chars :] for sign in UNHANDLED_SIGNS):
            raise BrokerFailed(f"the broker ended with code {code}:\n{text[-LOG_TAIL_CHARS:]}")
        return code

    def kill(self) -> None:
        """Ends it without warning, as a power cut does. It may be started again."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(KILL_TIMEOUT_S)
