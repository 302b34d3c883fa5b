"""The kernel's CRC-32 is zlib's."""

from __future__ import annotations

import zlib
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st


@given(data=st.binary(max_size=700), value=st.integers(0, 2**32 - 1))
def test_the_crc_of_the_kernel_is_that_of_zlib(kernel: ModuleType, data: bytes, value: int) -> None:
    assert kernel.crc32(data) == zlib.crc32(data)
    assert kernel.crc32(data, value) == zlib.crc32(data, value)


@pytest.mark.parametrize("size", [0, 1, 15, 16, 63, 64, 65, 79, 80, 127, 128, 4096, 100_003])
def test_the_crc_is_right_for_data_of_every_size(kernel: ModuleType, size: int) -> None:
    data = bytes((at * 7 + at // 251) % 256 for at in range(size))
    assert kernel.crc32(data, 77) == zlib.crc32(data, 77)


def test_anything_with_a_buffer(kernel: ModuleType) -> None:
    data = bytes(range(200))
    assert kernel.crc32(memoryview(data)[3:170]) == zlib.crc32(data[3:170])
    assert kernel.crc32(bytearray(data)) == zlib.crc32(data)
    with pytest.raises(TypeError):
        kernel.crc32("text")
