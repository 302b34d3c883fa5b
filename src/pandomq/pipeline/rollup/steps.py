"""The files of a rollup of one vhost, and how a step of it is decided.

    LAKE/_rollup/window=…/vhost=…/date=…/00000012-0.parquet   results of windows that step 12 closed
    LAKE/_rollup/_inner/VHOST/step.json                       the last step: its number, its batch, its knowledge
    LAKE/_rollup/_inner/VHOST/open/00000012                   sums of the windows that are open after it
    LAKE/_rollup/_inner/VHOST/stories/00000012.jsonl          events of the cluster
    LAKE/_rollup/_inner/VHOST/work/…                          files of a step of this process before it is decided
    LAKE/_rollup/_inner/VHOST/checkpoint                      Spark's progress

A step is decided when `step.json` is replaced, which is atomic. Files with higher numbers are left from a crash, and
are deleted before the next step. One process at a time rolls up a vhost into a lake; it writes to a directory of its
own, since executors of a killed one may continue for a while.
"""

from __future__ import annotations

import fcntl
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec

from pandomq.pipeline.lake import INNER as LAKE_INNER
from pandomq.pipeline.lake import Lake, LakeFault, sync
from pandomq.pipeline.rollup.batch_filter import Knowledge, Story

ROLLUP: Final = "_rollup"
INNER: Final = "_inner"
VERSION: Final = 1


class RollupStep(msgspec.Struct, frozen=True):
    number: int = -1
    batch: int = -1
    """Of the streaming query."""
    knowledge: Knowledge = Knowledge()
    version: int = VERSION


class RollupFiles:
    def __init__(self, lake: Path, vhost: str) -> None:
        """Raises LakeFault if the directory is no lake, or has a rollup that cannot be read."""
        Lake(lake)
        self.vhost = vhost
        self.root = lake / ROLLUP
        self._lake = lake
        # Like Spark's names of directories.
        self._place = quote(vhost, safe="")
        self._inner = self.root / INNER / self._place
        self._work = self._inner / "work" / uuid.uuid4().hex
        self.step = self._read()

    def _read(self) -> RollupStep:
        path = self._inner / "step.json"
        try:
            step = msgspec.json.decode(path.read_bytes(), type=RollupStep)
        except (FileNotFoundError, NotADirectoryError):
            return RollupStep()
        except msgspec.MsgspecError as error:
            raise LakeFault(f"cannot read {path}: {error}") from error
        if step.version != VERSION:
            raise LakeFault(f"{path} has the unknown version {step.version}: use the version of PandoMQ that wrote it")
        return step

    @property
    def checkpoint(self) -> Path:
        return self._inner / "checkpoint"

    @property
    def staging(self) -> Path:
        """The results of a step are written here before it is decided: window=…/date=…/*.parquet."""
        return self._work / "results"

    @property
    def still_open(self) -> Path:
        """The sums of windows that a step leaves open are written here before it is decided."""
        return self._work / "open"

    def open_sums(self, number: int | None = None) -> Path:
        """The sums of a step, or of the last one."""
        return self._inner / "open" / f"{self.step.number if number is None else number:08d}"

    @contextmanager
    def writing(self) -> Iterator[None]:
        """No other process writes in the meantime. Raises LakeFault if one does."""
        # A later archive finds that this is a lake, and nothing else.
        try:
            (self._lake / LAKE_INNER / "records").mkdir(parents=True, exist_ok=True)
            self._inner.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LakeFault(f"cannot create a lake in {self._lake}: {error.strerror}") from error
        with (self._inner / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise LakeFault(
                    f"another process rolls up vhost {self.vhost} into {self._lake}: stop it first"
                ) from None
            self.step = self._read()
            if self.step.batch >= 0 and not self.checkpoint.exists():
                raise LakeFault(
                    f"{self.checkpoint} is missing: the progress of the rollup is not known. Restore it, or roll up "
                    "into an empty directory"
                )
            self._remove_strays()
            yield

    def results(self, window: str) -> list[Path]:
        """The valid files."""
        files = self.root.glob(f"window={window}/vhost={self._place}/date=*/*.parquet")
        return sorted(path for path in files if _number(path) <= self.step.number)

    def stories(self) -> list[Story]:
        files = sorted((self._inner / "stories").glob("*.jsonl"))
        lines = [line for path in files if _number(path) <= self.step.number for line in path.read_text().splitlines()]
        return [msgspec.json.decode(line, type=Story) for line in lines]

    def decide(self, step: RollupStep, stories: list[Story]) -> None:
        """Results in `staging`, and sums of open windows, become valid: one step."""
        for count, staged in enumerate(sorted(self.staging.rglob("*.parquet"))):
            window, date = staged.parent.relative_to(self.staging).parts
            directory = self.root / window / f"vhost={self._place}" / date
            directory.mkdir(parents=True, exist_ok=True)
            sync(staged)
            staged.replace(directory / f"{step.number:08d}-{count}.parquet")
            sync(directory)
        if stories:
            directory = self._inner / "stories"
            directory.mkdir(exist_ok=True)
            _write(
                directory / f"{step.number:08d}.jsonl", b"".join(msgspec.json.encode(one) + b"\n" for one in stories)
            )
        sums = self.open_sums(step.number)
        shutil.rmtree(sums, ignore_errors=True)
        sums.parent.mkdir(exist_ok=True)
        for path in self.still_open.glob("*.parquet"):
            sync(path)
        self.still_open.replace(sums)
        sync(sums.parent)
        _write(self._inner / "step.json", msgspec.json.encode(step))
        before, self.step = self.open_sums(), step
        shutil.rmtree(before, ignore_errors=True)
        shutil.rmtree(self._work, ignore_errors=True)

    def _remove_strays(self) -> None:
        shutil.rmtree(self._work.parent, ignore_errors=True)
        for path in (self._inner / "open").glob("*"):
            if path != self.open_sums():
                shutil.rmtree(path)
        written = self.root.glob(f"window=*/vhost={self._place}/date=*/*.parquet")
        for path in (*written, *(self._inner / "stories").glob("*.jsonl")):
            if _number(path) > self.step.number:
                path.unlink()


def _number(path: Path) -> int:
    return int(path.name[:8])


def _write(path: Path, content: bytes) -> None:
    draft = path.with_name(path.name + ".draft")
    draft.write_bytes(content)
    sync(draft)
    draft.replace(path)
    sync(path.parent)
