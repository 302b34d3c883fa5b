"""A million hostile inputs: most to a node in this process, the rest over sockets to a running broker.

    tools/fuzz.py                              all of it
    tools/fuzz.py --seed 7 --epoch 123         one epoch again, as a failure asks for
    tools/fuzz.py --inputs 20000 --socket-inputs 0

Everything follows from the seed, which is printed. Each tenth epoch runs on both kernels, which have to write the same
bytes. A failure prints the seed and the bytes, keeps them in a file, and makes the exit code 1.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import faulthandler
import itertools
import json
import logging
import multiprocessing
import os
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

if TYPE_CHECKING:
    from tests.fuzz.conversations import Conversation
    from tests.fuzz.tally import FuzzFailure, Tally

EPOCH_INPUTS = 500
BOTH_KERNELS_EVERY = 10
WAITING_PER_JOB = 8
EPOCH_S_MAX = 120
"""An epoch takes less than a second; this long is a hang."""
OUT = ROOT / "build" / "fuzz"
console = Console(stderr=True)


@dataclass(frozen=True)
class Task:
    seed: int
    epoch: int
    inputs: int
    kernel: str


@dataclass(frozen=True)
class Outcome:
    task: Task
    tally: Tally
    failure: FuzzFailure | None = None
    trace: str = ""


# --- in the workers ---------------------------------------------------------------------------------------------------

_corpus: list[Conversation] = []


def prepare_worker(kernel: str) -> None:
    """Chooses the kernel before anything of the broker is imported."""
    os.environ.pop("PANDOMQ_PLAIN", None)
    if kernel == "plain":
        os.environ["PANDOMQ_PLAIN"] = "1"
    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGALRM, _on_hang)
    from tests.fuzz.epoch import recorded_corpus

    _corpus[:] = recorded_corpus()


def _on_hang(_number: int, _frame: object) -> None:
    raise TimeoutError(f"an epoch has not ended after {EPOCH_S_MAX} s")


def run_epoch(task: Task) -> Outcome:
    import traceback

    from tests.fuzz.epoch import Epoch
    from tests.fuzz.tally import FuzzFailure

    # The alarm ends a loop in Python and tells the input; one in the compiled kernel is ended by the second watch.
    signal.alarm(EPOCH_S_MAX)
    faulthandler.dump_traceback_later(EPOCH_S_MAX + 10, exit=True)
    epoch = Epoch(task.seed, task.epoch, _corpus)
    try:
        return Outcome(task, epoch.run(task.inputs))
    except FuzzFailure as failure:
        return Outcome(task, epoch.tally, failure, traceback.format_exc())
    finally:
        signal.alarm(0)
        faulthandler.cancel_dump_traceback_later()


# --- in the main process ----------------------------------------------------------------------------------------------


def kernels() -> list[str]:
    import importlib.util

    return ["fast", "plain"] if importlib.util.find_spec("pandomq.kernel._fast") else ["plain"]


def tasks_of(seed: int, inputs: int, available: list[str]) -> list[Task]:
    """As many epochs as make up the inputs, each tenth of them for both kernels."""
    tasks: list[Task] = []
    for epoch in itertools.count():
        if len(tasks) * EPOCH_INPUTS >= inputs:
            break
        chosen = available if epoch % BOTH_KERNELS_EVERY == 0 else available[:1]
        tasks += [Task(seed, epoch, EPOCH_INPUTS, kernel) for kernel in chosen]
    return tasks


def outcomes(tasks: list[Task], jobs: int) -> Iterator[Outcome]:
    """In the order in which they come. Both kernels are at work from the start, so that they run the same sources."""
    context = multiprocessing.get_context("spawn")
    waiting: set[concurrent.futures.Future[Outcome]] = set()
    with contextlib.ExitStack() as stack:
        pools = {
            kernel: stack.enter_context(
                concurrent.futures.ProcessPoolExecutor(jobs if first else 1, context, prepare_worker, (kernel,))
            )
            for first, kernel in zip((True, False), dict.fromkeys(task.kernel for task in tasks), strict=False)
        }
        for task in tasks:
            waiting.add(pools[task.kernel].submit(run_epoch, task))
            if len(waiting) >= jobs * WAITING_PER_JOB:
                done, waiting = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED)
                yield from (future.result() for future in done)
        for future in concurrent.futures.as_completed(waiting):
            yield future.result()


def report(seed: int, what: str, failure: FuzzFailure, trace: str, again: str) -> dict[str, Any]:
    """Says what failed, keeps the bytes, and gives the entry for the summary."""
    console.print(f"[red]FAILED[/red] {what}, input {failure.number}: {failure.reason}", highlight=False)
    entry: dict[str, Any] = {"where": what, "input": failure.number, "reason": failure.reason, "again": again}
    if failure.case is not None:
        OUT.mkdir(parents=True, exist_ok=True)
        path = OUT / f"failure-{seed}-{what.replace(' ', '-')}.bin"
        path.write_bytes(failure.case.data)
        entry |= {"kind": failure.case.kind, "bytes": failure.case.data.hex(), "file": str(path.relative_to(ROOT))}
        shown = entry["bytes"][:2000]
        console.print(f"  {failure.case.kind}, in {failure.case.pieces} pieces: {shown}", highlight=False)
    console.print(trace, highlight=False, markup=False)
    console.print(f"  seed {seed}; again with: {again}", highlight=False)
    return entry


def fuzz_nodes(tasks: list[Task], jobs: int, progress: Progress) -> dict[str, Any]:
    from tests.fuzz.tally import Tally

    total, failures = Tally(), []
    digests: dict[int, dict[str, bytes]] = {}
    bar = progress.add_task("in process", total=sum(task.inputs for task in tasks))
    for outcome in outcomes(tasks, jobs):
        task = outcome.task
        total.add(outcome.tally)
        progress.update(bar, advance=task.inputs)
        again = f"tools/fuzz.py --seed {task.seed} --epoch {task.epoch} --kernel {task.kernel}"
        if outcome.failure is not None:
            failures.append(
                report(task.seed, f"epoch {task.epoch} {task.kernel}", outcome.failure, outcome.trace, again)
            )
        else:
            digests.setdefault(task.epoch, {})[task.kernel] = outcome.tally.digest
    compared = [found for found in digests.values() if len(found) == 2]
    differing = [epoch for epoch, found in digests.items() if len(set(found.values())) > 1]
    for epoch in differing:
        again = f"tools/fuzz.py --seed {tasks[0].seed} --epoch {epoch}"
        console.print(f"[red]FAILED[/red] epoch {epoch}: the kernels wrote different bytes; again with: {again}")
    summary = total.summary() | {"epochs": len(tasks), "compared_epochs": len(compared), "differing_epochs": differing}
    return summary | {"failures": failures}


def fuzz_broker(seed: int, inputs: int, progress: Progress) -> dict[str, Any]:
    import traceback

    from tests.fuzz.sockets import SocketFuzz
    from tests.fuzz.tally import FuzzFailure
    from tests.support.client import Address
    from tests.support.process import BrokerProcess

    bar = progress.add_task("over sockets", total=inputs)
    failures: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="pandomq-fuzz-") as directory:
        broker = BrokerProcess(Path(directory), "--log-level", "error")
        broker.start()
        run = SocketFuzz(seed, Address("127.0.0.1", broker.port), broker.pid)
        try:
            run.run(inputs, lambda done: progress.update(bar, completed=done))
        except FuzzFailure as failure:
            again = f"tools/fuzz.py --seed {seed} --inputs 0 --socket-inputs {inputs}"
            failures.append(report(seed, "sockets", failure, traceback.format_exc(), again))
        code = broker.stop()
        log = broker.log_text()
    if code != 0 or "Traceback" in log:
        console.print(f"[red]FAILED[/red] the broker ended with {code}; seed {seed}\n{log}", highlight=False)
        failures.append({"where": "broker", "reason": f"exit code {code}", "log": log[-5000:]})
    more = {"slowest_probe_ms": round(run.slowest_probe_s * 1000, 1), "failures": failures}
    return run.tally.summary() | more | {"start": vars(run.start), "half": vars(run.half), "end": vars(run.end)}


def main(
    inputs: Annotated[int, typer.Option(min=0, help="Inputs to a node in this process.")] = 970_000,
    socket_inputs: Annotated[int, typer.Option(min=0, help="Inputs over sockets to a running broker.")] = 30_000,
    seed: Annotated[int | None, typer.Option(help="Decides everything; drawn and printed if not given.")] = None,
    epoch: Annotated[int | None, typer.Option(help="Run this epoch only.")] = None,
    kernel: Annotated[str | None, typer.Option(help="fast or plain; otherwise both as far as they are built.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes at work.")] = os.cpu_count() or 1,
    summary: Annotated[Path, typer.Option(help="Where the JSON summary goes.")] = OUT / "summary.json",
) -> None:
    """Hostile inputs from a seed; exit code 1 if anything gave way."""
    chosen = secrets.randbelow(2**32) if seed is None else seed
    available = kernels() if kernel is None else [kernel]
    console.print(f"seed {chosen}, kernels {', '.join(available)}", highlight=False)
    tasks = tasks_of(chosen, inputs, available)
    if epoch is not None:
        tasks, socket_inputs = [Task(chosen, epoch, EPOCH_INPUTS, name) for name in available], 0
    begin = time.monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    result: dict[str, Any] = {"seed": chosen, "kernels": available}
    with Progress(*columns, TimeRemainingColumn(), console=console) as progress:
        if tasks:
            result["in_process"] = fuzz_nodes(tasks, jobs, progress)
        if socket_inputs:
            result["over_sockets"] = fuzz_broker(chosen, socket_inputs, progress)
    parts = [result[part] for part in ("in_process", "over_sockets") if part in result]
    result["inputs"] = sum(part["inputs"] for part in parts)
    result["failed"] = sum(len(part["failures"]) + len(part.get("differing_epochs", [])) for part in parts)
    result["seconds"] = round(time.monotonic() - begin, 1)
    summary.parent.mkdir(parents=True, exist_ok=True)
    summary.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps({key: result[key] for key in ("seed", "kernels", "inputs", "failed", "seconds")}))
    raise typer.Exit(1 if result["failed"] else 0)


if __name__ == "__main__":
    typer.run(main)
