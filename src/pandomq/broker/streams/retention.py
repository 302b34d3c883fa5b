"""Which messages leave a stream, whole segments at a time, oldest first, and which wait for an archive before that.

It depends only on the log: chunks, settings, stored offsets, and the time of an entry. So brokers agree on it. Its
warnings (`ArchiveWarnings`) are for people, and each broker's own.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pandomq.broker.queues.queue import Queue
    from pandomq.broker.queues.queue_settings import QueueSettings
    from pandomq.broker.streams.chunk_index import ChunkIndex, SealedChunk

ARCHIVE_WARNINGS_MAX: Final = 64
"""The limit of warnings that were not fetched yet; further ones are dropped."""
WARNING_SHARE: Final = 0.5
"""The part of what a stream may keep for its archive: the warning comes before anything is lost."""


def is_too_much(index: "ChunkIndex", settings: "QueueSettings", now_us: int) -> bool:
    """The first segment is to be dropped; the last one always stays."""
    if index.segment_count <= 1:
        return False
    if 0 <= settings.bytes_max < index.size_bytes:
        return True
    too_old_us = now_us - settings.max_age_ms * 1000
    return settings.max_age_ms >= 0 and index.first_segment()[-1].last_time_us <= too_old_us


def is_awaited(segment: "list[SealedChunk]", settings: "QueueSettings", archived_end: int | None) -> bool:
    """An archive has not yet reached the end of it."""
    return settings.archive is not None and (archived_end or 0) <= segment[-1].last_offset


class ArchiveWarnings:
    """Warnings: a stream that keeps much for its archive, and one that has lost messages that were not archived. The
    first is given once, and again only after the archive has caught up somewhat."""

    __slots__ = ("_texts",)

    def __init__(self) -> None:
        self._texts: list[str] = []

    def look_at(self, queue: "Queue", lost: int) -> None:
        """Called after retention has dropped so many messages that were not archived."""
        stream, settings = queue.stream, queue.settings
        assert stream is not None
        if lost:
            self._say(
                f"{queue.resource} deleted {lost:,} messages, up to offset {stream.first_offset - 1}, before "
                f"'{settings.archive}' had archived them"
            )
        limit_bytes = settings.unarchived_bytes_max
        much = stream.held_back and stream.index.size_bytes > limit_bytes * WARNING_SHARE
        if much and not stream.warned_of:
            self._say(
                f"{queue.resource} retains {stream.index.size_bytes:,} bytes for '{settings.archive}', which has "
                f"archived up to offset {stream.offsets.get(settings.archive or '') or 0}: above {limit_bytes:,} "
                "bytes the oldest messages are deleted"
            )
        stream.warned_of = much

    def take(self) -> list[str]:
        texts, self._texts = self._texts, []
        return texts

    def _say(self, text: str) -> None:
        if len(self._texts) < ARCHIVE_WARNINGS_MAX:
            self._texts.append(text)
