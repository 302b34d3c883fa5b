"""A broker's report of its load, as bytes."""

from __future__ import annotations

import pytest

from pandomq.cluster.load import VERSION, BadLoadMessage, ClientLoad, decode_load, encode_load


def test_loads_are_decoded_as_they_were_encoded() -> None:
    assert decode_load(encode_load(ClientLoad(0))) == ClientLoad(0)
    assert decode_load(encode_load(ClientLoad(2**32))) == ClientLoad(2**32)


def test_a_load_of_another_version_is_ignored() -> None:
    assert decode_load(bytes((VERSION + 1,)) + b"whatever") is None


def test_a_load_with_more_fields_is_decoded() -> None:
    assert decode_load(encode_load(ClientLoad(3))[:1] + b"\x92\x03\x07") == ClientLoad(3)


@pytest.mark.parametrize("data", [b"", bytes((VERSION,)), bytes((VERSION,)) + b"\x91\xff", bytes((VERSION,)) + b"\xc1"])
def test_malformed_loads_are_refused(data: bytes) -> None:
    with pytest.raises(BadLoadMessage):
        decode_load(data)
