"""Builds the compiled kernel and the compiled writer of the log; all else about the package is said in pyproject.toml.

Both are optional: where no C compiler works, the install goes on without them, says so, and the broker runs on their
plain twins. A fault in the Cython source itself is never excused. PANDOMQ_KERNEL in the environment decides about both:

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
SOURCES = Path("src")
KERNEL = "pandomq.kernel._fast"
LOG_WRITER = "pandomq.runtime.disk._log_writer"
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
  PandoMQ: {part} was NOT built: {compiler} failed.
  The broker works without it, {without}.
  To have it, install a C compiler and Python's headers, and then again
      pip install --force-reinstall --no-cache-dir --no-deps pandomq
************************************************************************
"""
PARTS = {
    KERNEL: {"part": "the compiled kernel", "without": "on the plain kernel, much slower"},
    LOG_WRITER: {"part": "the compiled writer of the log", "without": "with later confirms"},
}


class BuildCompiledParts(build_ext):
    """Compiles the parts, and turns the lack of a compiler into a notice where that is allowed."""

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
            # A part compiled from older sources must not be picked up in place of the one that failed.
            source = source_of(ext.name)
            for stale in {Path(self.get_ext_fullpath(ext.name)), *source.parent.glob(f"{source.stem}.*.so")}:
                stale.unlink(missing_ok=True)
            compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "the C compiler"
            print(f"{failure}\n{NOTICE.format(compiler=compiler, **PARTS[ext.name])}", file=sys.stderr)


def source_of(name: str) -> Path:
    return SOURCES.joinpath(*name.split(".")).with_suffix(".pyx")


def compiled_parts() -> list[Extension]:
    mode = os.environ.get("PANDOMQ_KERNEL", "optional")
    if mode not in MODES:
        raise SystemExit(f"PANDOMQ_KERNEL is {mode!r}; it may be one of {', '.join(MODES)}")
    if mode == "skip":
        return []
    kernel = source_of(KERNEL).parent
    included = sorted(str(path) for pattern in ("fast/*.pxi", "**/*.pxd") for path in kernel.glob(pattern))
    return [
        Extension(
            name,
            sources=[str(source_of(name))],
            depends=depends,
            extra_compile_args=["-O3"],
            optional=mode == "optional",
        )
        for name, depends in ((KERNEL, included), (LOG_WRITER, []))
        if source_of(name).exists()
    ]


setup(ext_modules=compiled_parts(), cmdclass={"build_ext": BuildCompiledParts})
