"""Builds the compiled kernel; all else about the package is said in pyproject.toml.

The compiled kernel is optional: where no C compiler works, the install goes on without it, says so, and the broker runs
on its plain twin. A fault in the Cython source itself is never excused. PANDOMQ_KERNEL in the environment decides:

    optional   (default) try to compile, go on without
    require    a failure to compile is an error
    skip       do not compile
"""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError, ExecError, PlatformError

MODES = ("optional", "require", "skip")
KERNEL = Path("src/pandomq/kernel")
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    # Nothing here is pickled or doctested, and what Cython adds for that would have to be told in the stub.
    "auto_pickle": False,
    "autotestdict": False,
}
NOTICE = """
************************************************************************
  PandoMQ: the compiled kernel was NOT built: {compiler} failed.
  The broker works without it, on the plain kernel, much slower.
  To have it, install a C compiler and Python's headers, and then again
      pip install --force-reinstall --no-cache-dir --no-deps pandomq
************************************************************************
"""


class BuildKernel(build_ext):
    """Compiles the kernel, and turns the lack of a compiler into a notice where that is allowed."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.cython_directives = DIRECTIVES
        # The generated C is no source of ours: it stays out of src/ and out of the source distribution.
        self.cython_c_in_temp = True

    def build_extension(self, ext: Extension) -> None:
        try:
            super().build_extension(ext)
        except (CCompilerError, ExecError, PlatformError) as failure:
            if not ext.optional:
                raise
            # A kernel compiled from older sources must not be picked up in place of the one that failed.
            for stale in {Path(self.get_ext_fullpath(ext.name)), *KERNEL.glob("_fast.*.so")}:
                stale.unlink(missing_ok=True)
            compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "the C compiler"
            print(f"{failure}\n{NOTICE.format(compiler=compiler)}", file=sys.stderr)


def kernel_extensions() -> list[Extension]:
    mode = os.environ.get("PANDOMQ_KERNEL", "optional")
    if mode not in MODES:
        raise SystemExit(f"PANDOMQ_KERNEL is {mode!r}; it may be one of {', '.join(MODES)}")
    source = KERNEL / "_fast.pyx"
    if mode == "skip" or not source.exists():
        return []
    included = sorted(str(path) for pattern in ("fast/*.pxi", "**/*.pxd") for path in KERNEL.glob(pattern))
    return [
        Extension(
            "pandomq.kernel._fast",
            sources=[str(source)],
            depends=included,
            extra_compile_args=["-O3"],
            optional=mode == "optional",
        )
    ]


setup(ext_modules=kernel_extensions(), cmdclass={"build_ext": BuildKernel})
