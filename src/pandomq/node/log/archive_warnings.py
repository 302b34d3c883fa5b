"""Writes warnings of streams that wait for an archive to the log of the process."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker

log = logging.getLogger("pandomq")


def warn_of_archives(broker: Broker) -> None:
    for text in broker.streams.archive_warnings.take():
        log.warning("%s", text)
