"""The file that names a broker's process belongs to the broker that runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pandomq.runtime.pid_file import pid_file

SECOND = """
import sys
from pathlib import Path
from pandomq.runtime.pid_file import pid_file
with pid_file(Path(sys.argv[1])):
    pass
"""


def test_a_second_process_leaves_the_file_of_the_first_alone(tmp_path: Path) -> None:
    with pid_file(tmp_path):
        subprocess.run([sys.executable, "-c", SECOND, str(tmp_path)], check=True, timeout=30)
        assert (tmp_path / "pid").read_text() == f"{os.getpid()}\n"
    assert not (tmp_path / "pid").exists()


def test_the_file_of_a_process_that_was_killed_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / "pid").write_text("4194305 and more\n")
    with pid_file(tmp_path):
        assert (tmp_path / "pid").read_text() == f"{os.getpid()}\n"
    assert not (tmp_path / "pid").exists()


def test_a_file_that_the_last_process_removes_meanwhile_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_file = os.open

    def open_just_before_the_removal(path: Path, flags: int, mode: int) -> int:
        monkeypatch.undo()
        fd = open_file(path, flags, mode)
        path.unlink()
        return fd

    monkeypatch.setattr(os, "open", open_just_before_the_removal)
    with pid_file(tmp_path) as is_ours:
        assert is_ours
        assert (tmp_path / "pid").read_text() == f"{os.getpid()}\n"
    assert not (tmp_path / "pid").exists()
