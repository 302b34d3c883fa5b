"""The key in a broker's directory: new at each start, and for its owner alone."""

from __future__ import annotations

from pathlib import Path

from pandomq.runtime.own_key import OWN_KEY, write_own_key


def test_the_key_is_new_at_each_start_and_read_by_its_owner_alone(tmp_path: Path) -> None:
    first = write_own_key(tmp_path)
    (tmp_path / OWN_KEY).chmod(0o644)
    second = write_own_key(tmp_path)
    assert first != second and len(second) == 64
    assert (tmp_path / OWN_KEY).read_bytes() == second + b"\n"
    assert (tmp_path / OWN_KEY).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [OWN_KEY]
