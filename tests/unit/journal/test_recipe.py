"""A recipe gives back what it was made of, and says what has to be known for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq.journal.snapshots.recipe import (
    BODY_BYTES_MIN,
    KnownBody,
    digest_of,
    encode_recipe,
    read_recipe,
    worth_naming,
)


@given(st.lists(st.tuples(st.binary(max_size=50), st.integers(0, 3 * BODY_BYTES_MIN)), max_size=8), st.binary())
def test_a_recipe_rebuilds_its_data(parts: list[tuple[bytes, int]], end: bytes) -> None:
    data, extents = b"", []
    for number, (before, length) in enumerate(parts):
        data += before
        extents.append((len(data), length))
        data += bytes([number]) * length
    data += end
    named = worth_naming(extents)
    recipe = encode_recipe(data, named)
    known = {digest_of(data[offset : offset + length]): data[offset : offset + length] for offset, length in named}
    steps = list(read_recipe(recipe))
    assert b"".join(known[step.digest] if isinstance(step, KnownBody) else step for step in steps) == data
    assert [step.length for step in steps if isinstance(step, KnownBody)] == [length for _, length in named]
    assert len(recipe) <= len(data) + 10 * len(named) + 10 - sum(length - 26 for _, length in named)


@pytest.mark.parametrize("recipe", [b"\0", b"\0\5\0\0\0abc", b"\1\5\0\0\0abc", b"\2\0\0\0\0"])
def test_malformed_recipes_are_refused(recipe: bytes) -> None:
    with pytest.raises(ValueError, match="steps"):
        list(read_recipe(recipe))
