"""Checks both kernels against the one stub that defines their interface, src/pandomq/kernel/_fast.pyi, and the compiled
writer of the log against its own.

mypy's stubtest compares a module with the stub of the same name. The compiled kernel has that name; the plain kernel is
offered under a borrowed name beside a copy of the stub. Both kernels must have the names of the stub, and may have more
of their own. A class of the compiled kernel has no attribute that the stub does not have; as Python, one of the plain
kernel may. If a compiled module is not built, the tool prints that it is left out.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
STUB = ROOT / "src" / "pandomq" / "kernel" / "_fast.pyi"
DECLARED = re.compile(r"^(?:(?:class|def) (\w+)|from \S+ import \w+ as (\w+)$)", re.MULTILINE)
COMPILED = "pandomq.kernel._fast"
LOG_WRITER = "pandomq.runtime.disk._log_writer"
BORROWED_NAME = "plain_kernel_as_stubbed"
BORROWED_MODULE = "import sys\n\nimport pandomq.kernel._plain\n\nsys.modules[__name__] = pandomq.kernel._plain\n"


def stubtest(module: str, *options: str, path: str = "") -> int:
    command = [sys.executable, "-m", "mypy.stubtest", module, "--mypy-config-file", str(ROOT / "pyproject.toml")]
    # An extension type cannot be combined with another by inheritance; no code does so, and the plain kernel's types
    # could.
    command += ["--ignore-disjoint-bases", *options]
    print(f"stubtest: {module}", flush=True)
    paths = os.pathsep.join(filter(None, (path, os.environ.get("PYTHONPATH"))))
    return subprocess.run(command, env=os.environ | {"PYTHONPATH": paths, "MYPYPATH": path}, check=False).returncode


def internal_names() -> list[str]:
    """The names in the compiled kernel that the stub does not declare: its own constants and classes."""
    declared = {name for names in DECLARED.findall(STUB.read_text()) for name in names}
    return sorted(set(dir(importlib.import_module(COMPILED))) - declared - {"KIND"})


def main() -> int:
    if not STUB.exists():
        print("stubtest left out: there is no stub yet")
        return 0
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, f"{BORROWED_NAME}.py").write_text(BORROWED_MODULE)
        Path(directory, f"{BORROWED_NAME}.pyi").write_text(STUB.read_text())
        failed = stubtest(BORROWED_NAME, "--ignore-missing-stub", path=directory)
        if importlib.util.find_spec(COMPILED) is None:
            print("stubtest of the compiled kernel left out: it is not built")
        else:
            allowed = Path(directory, "allowed")
            allowed.write_text("".join(f"{COMPILED}.{name}\n" for name in internal_names()))
            failed |= stubtest(COMPILED, "--allowlist", str(allowed), "--ignore-unused-allowlist")
    if importlib.util.find_spec(LOG_WRITER) is None:
        print("stubtest of the log's writer left out: it is not built")
    else:
        failed |= stubtest(LOG_WRITER, "--ignore-missing-stub")
    return failed


if __name__ == "__main__":
    sys.exit(main())
