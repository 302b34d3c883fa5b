"""What a broker tells of its load, as bytes."""

from __future__ import annotations

import pytest

from pandomq.cluster.load import VERSION, BadLoadMessage, Load, decode_load, encode_load


def test_what_is_said_is_heard() -> None:
    assert decode_load(encode_load(Load(0))) == Load(0)
    assert decode_load(encode_load(Load(2**32))) == Load(2**32)


def test_another_version_is_not_heard() -> None:
    assert decode_load(bytes((VERSION + 1,)) + b"whatever") is None


def test_a_later_one_may_say_more() -> None:
    assert decode_load(encode_load(Load(3))[:1] + b"\x92\x03\x07") == Load(3)


@pytest.mark.parametrize("data", [b"", bytes((VERSION,)), bytes((VERSION,)) + b"\x91\xff", bytes((VERSION,)) + b"\xc1"])
def test_nonsense_is_told_apart(data: bytes) -> None:
    with pytest.raises(BadLoadMessage):
        decode_load(data)
