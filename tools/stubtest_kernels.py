"""Holds both kernels against the one stub that states their interface, src/pandomq/kernel/_fast.pyi.

mypy's stubtest compares a module with the stub of the same name. The compiled kernel has that name; the plain one is
offered under a borrowed name beside a copy of the stub. Only what the stub declares is asked of the plain kernel: as
Python, it may have more names of its own. A compiled kernel that is not built is left out, aloud.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
STUB = ROOT / "src" / "pandomq" / "kernel" / "_fast.pyi"
BORROWED_NAME = "plain_kernel_as_stubbed"
BORROWED_MODULE = "import sys\n\nimport pandomq.kernel._plain\n\nsys.modules[__name__] = pandomq.kernel._plain\n"


def stubtest(module: str, *options: str, path: str = "") -> int:
    command = [sys.executable, "-m", "mypy.stubtest", module, "--mypy-config-file", str(ROOT / "pyproject.toml")]
    # An extension type cannot be combined with another by inheritance; nobody tries, and the plain twin could.
    command += ["--ignore-disjoint-bases", *options]
    print(f"stubtest: {module}", flush=True)
    return subprocess.run(command, env=os.environ | {"PYTHONPATH": path, "MYPYPATH": path}, check=False).returncode


def main() -> int:
    if not STUB.exists():
        print("stubtest left out: there is no stub yet")
        return 0
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, f"{BORROWED_NAME}.py").write_text(BORROWED_MODULE)
        Path(directory, f"{BORROWED_NAME}.pyi").write_text(STUB.read_text())
        failed = stubtest(BORROWED_NAME, "--ignore-missing-stub", path=directory)
    if importlib.util.find_spec("pandomq.kernel._fast") is None:
        print("stubtest of the compiled kernel left out: it is not built")
    else:
        failed |= stubtest("pandomq.kernel._fast")
    return failed


if __name__ == "__main__":
    sys.exit(main())
