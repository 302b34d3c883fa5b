"""Changes to encoded headers agree with decoding, changing and encoding."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pandomq.broker.publishing.content_header import (
    entries_of,
    expiration_of,
    reply_to_of,
    spans_of,
    with_expiration,
    with_headers,
    with_reply_to,
)
from pandomq.fieldtable import encode_table
from pandomq.properties import Properties, decode_header, encode_header

texts = st.none() | st.text(max_size=20).filter(lambda text: len(text.encode()) < 256)
tables = st.dictionaries(st.text("abc", max_size=3), st.integers(-5, 5) | st.text(max_size=3), max_size=3)
some_properties = st.builds(
    Properties,
    content_type=texts,
    content_encoding=texts,
    headers=st.none() | tables,
    delivery_mode=st.none() | st.integers(0, 255),
    priority=st.none() | st.integers(0, 255),
    correlation_id=texts,
    reply_to=texts,
    expiration=texts,
    message_id=texts,
    timestamp=st.none() | st.integers(0, 2**63),
    type=texts,
    user_id=texts,
    app_id=texts,
    cluster_id=texts,
)


@given(some_properties, tables, st.booleans())
def test_headers(properties: Properties, table: dict[str, object], keep: bool) -> None:
    header = encode_header(5, properties)
    spans = spans_of(header)
    assert entries_of(header, spans) == encode_table(properties.headers or {})[4:]
    changed = with_headers(header, spans, encode_table(table)[4:], keep_expiration=keep)
    expiration = properties.expiration if keep else None
    expected = msgspec.structs.replace(properties, headers=table, expiration=expiration)
    assert decode_header(changed) == (5, expected)


@given(some_properties)
def test_reply_to_and_expiration(properties: Properties) -> None:
    header = encode_header(5, properties)
    spans = spans_of(header)
    assert reply_to_of(header, spans) == (properties.reply_to or "").encode()
    assert expiration_of(header, spans) == (properties.expiration or "").encode()
    if properties.reply_to is not None:
        expected = msgspec.structs.replace(properties, reply_to="there")
        assert decode_header(with_reply_to(header, spans, b"there")) == (5, expected)
    if properties.expiration is not None:
        expected = msgspec.structs.replace(properties, expiration="77")
        assert decode_header(with_expiration(header, spans, b"77")) == (5, expected)
