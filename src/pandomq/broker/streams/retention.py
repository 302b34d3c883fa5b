"""What leaves a stream, whole segments at a time, oldest first, and what waits for an archive before it does.

It depends on nothing but the log: chunks, settings, offsets that were stored, and the time of an entry. So brokers
agree on it. What they say about it (`Notices`) is for people, and each broker's own.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pandomq.broker.queue import Queue
    from pandomq.broker.queue_settings import QueueSettings
    from pandomq.broker.streams.chunk_index import ChunkIndex, SealedChunk

NOTICES_MAX: Final = 64
"""What nobody has fetched yet; more is not said."""
WARNING_SHARE: Final = 0.5
"""Of what a stream may keep for its archive: people hear of it before anything is lost."""


def is_too_much(index: "ChunkIndex", settings: "QueueSettings", now_us: int) -> bool:
    """The first segment is to go; the last one always stays."""
    if index.segment_count <= 1:
        return False
    if 0 <= settings.bytes_max < index.size_bytes:
        return True
    too_old_us = now_us - settings.max_age_ms * 1000
    return settings.max_age_ms >= 0 and index.first_segment()[-1].last_time_us <= too_old_us


def is_awaited(segment: "list[SealedChunk]", settings: "QueueSettings", archived_end: int | None) -> bool:
    """An archive has yet to come to the end of it."""
    return settings.archive is not None and (archived_end or 0) <= segment[-1].last_offset


class Notices:
    """What is worth a warning: a stream that keeps much for its archive, and one that has lost what was not archived.
    The first is said once, and again only after the archive has come nearer."""

    __slots__ = ("_texts",)

    def __init__(self) -> None:
        self._texts: list[str] = []

    def look_at(self, queue: "Queue", lost: int) -> None:
        """After retention has dropped so many messages that were not archived."""
        stream, settings = queue.stream, queue.settings
        assert stream is not None
        if lost:
            self._say(
                f"{queue.resource} has dropped {lost:,} messages, up to offset {stream.first_offset - 1}, "
                f"that '{settings.archive}' had not archived"
            )
        limit_bytes = settings.unarchived_bytes_max
        much = stream.held_back and stream.index.size_bytes > limit_bytes * WARNING_SHARE
        if much and not stream.warned_of:
            self._say(
                f"{queue.resource} keeps {stream.index.size_bytes:,} bytes for '{settings.archive}', which has come to "
                f"offset {stream.offsets.get(settings.archive or '') or 0}: beyond {limit_bytes:,} bytes the oldest go"
            )
        stream.warned_of = much

    def take(self) -> list[str]:
        texts, self._texts = self._texts, []
        return texts

    def _say(self, text: str) -> None:
        if len(self._texts) < NOTICES_MAX:
            self._texts.append(text)
