"""A job that dies says why in a line, not by Spark's traces."""

from __future__ import annotations

import pytest

from pandomq.cli.pipeline.running import reason_of

FROM_SPARK = """[STREAM_FAILED] Query [id = 1] terminated with exception: [PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR]
Traceback (most recent call last):
  File "client.py", line 1, in ask
pandomq.data_client.failures.Unreachable: no broker could do it in time (streams): connection refused
 SQLSTATE: 38000"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (FROM_SPARK, "no broker could do it in time (streams): connection refused"),
        ("[PATH_NOT_FOUND] Path does not exist: file:/lake\nmore", "[PATH_NOT_FOUND] Path does not exist: file:/lake"),
    ],
)
def test_the_reason(text: str, reason: str) -> None:
    assert reason_of(text) == reason
