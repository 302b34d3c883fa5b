"""Byte streams as a broker would send them, written with pika's encoder: a second definition beside our own."""

from collections.abc import Iterable

from pika import frame, spec


def delivery(
    tag: int, body: bytes = b"x" * 16, key: str = "q", consumer: str = "c0000", frame_bytes_max: int = 131072
) -> bytes:
    method = spec.Basic.Deliver(consumer_tag=consumer, delivery_tag=tag, exchange="", routing_key=key)
    header = frame.Header(1, len(body), spec.BasicProperties(delivery_mode=1))
    step = frame_bytes_max - 8
    bodies = [frame.Body(1, body[at : at + step]).marshal() for at in range(0, len(body), step)]
    return bytes(frame.Method(1, method).marshal() + header.marshal() + b"".join(bodies))


def deliveries(tags: Iterable[int], body: bytes = b"x" * 16) -> bytes:
    return b"".join(delivery(tag, body) for tag in tags)


def ack(tag: int, multiple: bool = False) -> bytes:
    return bytes(frame.Method(1, spec.Basic.Ack(tag, multiple)).marshal())


def nack(tag: int, multiple: bool = False) -> bytes:
    return bytes(frame.Method(1, spec.Basic.Nack(tag, multiple)).marshal())


def heartbeat() -> bytes:
    return bytes(frame.Heartbeat().marshal())


def channel_close(code: int, text: str) -> bytes:
    return bytes(frame.Method(1, spec.Channel.Close(code, text, 0, 0)).marshal())
