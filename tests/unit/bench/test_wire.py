"""Our encoder against bytes written out by hand, and against pika's."""

import pytest
from pika import frame, spec

from pandomq.bench.client import wire


def as_pika(method: object, channel: int = 1) -> bytes:
    return bytes(frame.Method(channel, method).marshal())


def test_an_ack_is_the_bytes_of_the_specification() -> None:
    expected = "01 0001 0000000d 003c 0050 0000000000000102 01 ce"
    assert wire.basic_ack(1, 0x102, multiple=True) == bytes.fromhex(expected)


def test_a_publish_is_the_bytes_of_the_specification() -> None:
    method = "01 0001 0000000c 003c 0028 0000 00 03 612e62 00 ce"
    header = "02 0001 0000000f 003c 0000 0000000000000002 1000 01 ce"
    body = "03 0001 00000002 6869 ce"
    encoded = wire.publish(1, "", "a.b", wire.MessageProperties(), b"hi", 131072)
    assert encoded == bytes.fromhex(method) + bytes.fromhex(header) + bytes.fromhex(body)


def test_an_empty_body_has_no_body_frame() -> None:
    encoded = wire.publish(1, "", "q", wire.MessageProperties(), b"", 131072)
    assert encoded.endswith(bytes.fromhex("0000000000000000 1000 01 ce"))


def test_a_long_body_is_cut_at_the_agreed_frame_size() -> None:
    encoded = wire.publish(1, "", "q", wire.MessageProperties(), b"x" * 100, 48)
    sizes = [40, 40, 20]
    assert encoded.endswith(b"".join(b"\x03\x00\x01" + size.to_bytes(4) + b"x" * size + b"\xce" for size in sizes))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (wire.MessageProperties(), spec.BasicProperties(delivery_mode=1)),
        (wire.MessageProperties(persistent=True), spec.BasicProperties(delivery_mode=2)),
        (wire.MessageProperties(priority=7), spec.BasicProperties(delivery_mode=1, priority=7)),
        (wire.MessageProperties(expiration_ms=60000), spec.BasicProperties(delivery_mode=1, expiration="60000")),
        (
            wire.MessageProperties(headers={"key": "a", "flag": True}, priority=1, expiration_ms=5),
            spec.BasicProperties(delivery_mode=1, headers={"key": "a", "flag": True}, priority=1, expiration="5"),
        ),
    ],
)
def test_properties_are_encoded_as_pika_does(ours: wire.MessageProperties, theirs: spec.BasicProperties) -> None:
    assert ours.encode() == b"".join(theirs.encode())


def test_methods_are_encoded_as_pika_does() -> None:
    arguments: dict[str, wire.ArgumentValue] = {
        "x-max-length": 5,
        "x-overflow": "reject-publish",
        "x-single-active-consumer": True,
    }
    assert wire.queue_declare(1, "q", arguments, durable=True, exclusive=True) == as_pika(
        spec.Queue.Declare(queue="q", durable=True, exclusive=True, arguments=arguments)
    )
    assert wire.queue_bind(1, "q", "x", "k") == as_pika(
        spec.Queue.Bind(queue="q", exchange="x", routing_key="k", arguments={})
    )
    assert wire.queue_delete(1, "q") == as_pika(spec.Queue.Delete(queue="q"))
    assert wire.exchange_declare(1, "x", "topic", {}) == as_pika(
        spec.Exchange.Declare(exchange="x", type="topic", arguments={})
    )
    assert wire.exchange_delete(1, "x") == as_pika(spec.Exchange.Delete(exchange="x"))
    assert wire.basic_qos(1, 300) == as_pika(spec.Basic.Qos(prefetch_count=300))
    assert wire.basic_consume(1, "q", "c", {"x-priority": 5}, auto_ack=True, no_wait=True) == as_pika(
        spec.Basic.Consume(queue="q", consumer_tag="c", no_ack=True, nowait=True, arguments={"x-priority": 5})
    )
    assert wire.confirm_select(1) == as_pika(spec.Confirm.Select())
    assert wire.channel_open(1) == as_pika(spec.Channel.Open())
    assert wire.tune_ok(2047, 131072) == as_pika(spec.Connection.TuneOk(2047, 131072, 0), channel=0)
    assert wire.connection_open("/") == as_pika(spec.Connection.Open("/"), channel=0)
    assert wire.connection_close() == as_pika(spec.Connection.Close(200, "done", 0, 0), channel=0)


def test_a_number_takes_the_width_it_needs() -> None:
    assert wire.field_value(-1) == b"I\xff\xff\xff\xff"
    assert wire.field_value(0.5) == b"d\x3f\xe0\x00\x00\x00\x00\x00\x00"
    assert wire.field_value(2**31) == b"l\x00\x00\x00\x00\x80\x00\x00\x00"


def test_a_refusal_is_readable() -> None:
    payload = as_pika(spec.Channel.Close(404, "NOT_FOUND - no queue 'q'", 50, 10))[7:-1]
    assert wire.refusal(payload) == "404 NOT_FOUND - no queue 'q'"
