"""An install on a machine whose C compiler does not work gives the broker with its plain kernel, and reports this."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PROJECT_FILES = ("pyproject.toml", "setup.py", "README.md", "LICENSE")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy without compiled files: the test must neither see nor disturb the kernel that other tests run on."""
    copy = tmp_path / "project"
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("*.so", "*.egg-info", "__pycache__"))
    for name in PROJECT_FILES:
        shutil.copy(ROOT / name, copy / name)
    return copy


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    # The kernel that the test run itself selects must not determine the result of this install.
    clean = {name: value for name, value in os.environ.items() if name not in ("PANDOMQ_PLAIN", "PANDOMQ_KERNEL")}
    return subprocess.run(command, env=clean | environment, text=True, capture_output=True, check=False)


def build_wheel(project: Path, **environment: str) -> tuple[Path | None, str]:
    pip = (sys.executable, "-m", "pip", "wheel", "--verbose", "--no-build-isolation", "--no-deps")
    result = run(*pip, "--wheel-dir", str(project / "wheels"), str(project), **environment)
    wheels = list((project / "wheels").glob("*.whl"))
    return (wheels[0] if result.returncode == 0 else None), result.stdout + result.stderr


def test_without_a_compiler_the_plain_kernel_is_installed_with_a_notice(project: Path, tmp_path: Path) -> None:
    wheel, output = build_wheel(project, CC="/bin/false")
    assert wheel is not None, output
    assert "the compiled kernel was NOT built" in output
    assert "the compiled writer of the log was NOT built" in output

    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if name.endswith((".so", ".pyx", ".pxi", ".c"))]
        archive.extractall(installed)
    script = (
        "import pandomq.kernel as kernel; from pandomq.runtime.disk import log_lane; "
        "print(kernel.__file__); print(kernel.KIND); print(log_lane.COMPILED)"
    )
    result = run(sys.executable, "-c", script, PYTHONPATH=str(installed))
    assert result.returncode == 0, result.stderr
    place, chosen, writer = result.stdout.splitlines()
    assert Path(place).is_relative_to(installed)
    assert (chosen, writer) == ("plain", "False")


def test_where_the_kernel_is_required_a_missing_compiler_is_an_error(project: Path) -> None:
    wheel, output = build_wheel(project, CC="/bin/false", PANDOMQ_KERNEL="require")
    assert wheel is None, output
