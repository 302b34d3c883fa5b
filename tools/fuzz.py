"""Sends a million hostile inputs to brokers with other clients, and fewer to a node in this process.

    tools/fuzz.py                              all of it
    tools/fuzz.py --seed 7 --epoch 123         repeats one epoch, as a failure asks for
    tools/fuzz.py --seed 7 --batch amqp:123    repeats one batch on a new broker; with --at-cluster on a cluster
    tools/fuzz.py --inputs 20000 --socket-inputs 0 --live-inputs 0 --cluster-inputs 0

Everything follows from the seed, which is printed. In process each tenth epoch runs on both kernels, which have to
write the same bytes. Live inputs use AMQP, the data port and HTTP, logged in and not, on a single broker and then on a
backup and a secondary of a cluster. Legal clients (bystanders) work meanwhile, and their account must balance
(`tests/fuzz/live`). A failure prints the seed and the sent bytes, keeps them in files, and makes the exit code 1.
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
    from tests.fuzz.live.attack import Harmed
    from tests.fuzz.tally import FuzzFailure, Tally

EPOCH_INPUTS = 500
BOTH_KERNELS_EVERY = 10
WAITING_PER_JOB = 8
EPOCH_S_MAX = 120
"""An epoch takes less than a second; an epoch that takes this long is a hang."""
OUT = ROOT / "build" / "fuzz"
LIVE_SHARES = {"amqp": 0.67, "data": 0.27, "http": 0.06}
"""The share of live inputs on each interface; an HTTP request takes ten times as long as an input of the others."""
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
    """Chooses the kernel before any module of the broker is imported."""
    os.environ.pop("PANDOMQ_PLAIN", None)
    if kernel == "plain":
        os.environ["PANDOMQ_PLAIN"] = "1"
    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGALRM, _on_hang)
    from tests.fuzz.epoch import recorded_corpus

    _corpus[:] = recorded_corpus()


def _on_hang(_number: int, _frame: object) -> None:
    raise TimeoutError(f"an epoch did not finish within {EPOCH_S_MAX} s")


def run_epoch(task: Task) -> Outcome:
    import traceback

    from tests.fuzz.epoch import Epoch
    from tests.fuzz.tally import FuzzFailure

    # The alarm interrupts a loop in Python and reports the input; the second watch ends a loop in the compiled kernel.
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
    """Returns as many epochs as make up the inputs, each tenth of them for both kernels."""
    tasks: list[Task] = []
    for epoch in itertools.count():
        if len(tasks) * EPOCH_INPUTS >= inputs:
            break
        chosen = available if epoch % BOTH_KERNELS_EVERY == 0 else available[:1]
        tasks += [Task(seed, epoch, EPOCH_INPUTS, kernel) for kernel in chosen]
    return tasks


def outcomes(tasks: list[Task], jobs: int) -> Iterator[Outcome]:
    """Yields outcomes as they complete. Both kernels are in use from the start, so that they run the same sources."""
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
    """Prints the failure, keeps the bytes, and returns the entry for the summary."""
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


def fuzz_live(seed: int, inputs: int, *, cluster: bool, progress: Progress, only: str | None = None) -> dict[str, Any]:
    """Fuzzes one broker, or a backup and a secondary of a cluster, with bystanders."""
    from tests.fuzz.live.attack import Harmed
    from tests.fuzz.live.scene import fuzz_cluster, fuzz_one_broker

    place = "cluster" if cluster else "live broker"
    wanted = {surface: round(inputs * share) for surface, share in LIVE_SHARES.items()}
    bar = progress.add_task(f"beside bystanders, {place}", total=sum(wanted.values()))
    surface, _, number = (only or ":").partition(":")
    batch = (surface, int(number)) if only else None
    try:
        run = fuzz_cluster if cluster else fuzz_one_broker
        found = run(seed, wanted, lambda done: progress.update(bar, completed=done), batch)
    except Harmed as harmed:
        return {"inputs": 0, "failures": [report_harm(seed, place, harmed, cluster=cluster)]}
    return found | {"failures": []}


def report_harm(seed: int, place: str, harmed: Harmed, *, cluster: bool) -> dict[str, Any]:
    """Prints what was sent last, and keeps it."""
    console.print(f"[red]HARMED[/red] {place}, seed {seed}:", highlight=False)
    console.print(harmed.reason, highlight=False, markup=False)
    OUT.mkdir(parents=True, exist_ok=True)
    sent: list[dict[str, Any]] = []
    for where, number, data in harmed.sent:
        surface = where.partition(" ")[0]
        path = OUT / f"harm-{seed}-{surface}-{number}.bin"
        path.write_bytes(data)
        again = f"tools/fuzz.py --seed {seed} --batch {surface}:{number}{' --at-cluster' if cluster else ''}"
        sent.append({"where": where, "batch": number, "file": str(path.relative_to(ROOT)), "again": again})
        console.print(f"  {where}, batch {number}, {len(data)} bytes; again with: {again}", highlight=False)
    return {"where": place, "reason": harmed.reason, "sent": sent}


def main(
    inputs: Annotated[int, typer.Option(min=0, help="Number of inputs to a node in this process.")] = 100_000,
    socket_inputs: Annotated[
        int, typer.Option(min=0, help="Number of inputs over sockets to a running broker.")
    ] = 10_000,
    live_inputs: Annotated[
        int, typer.Option(min=0, help="Number of inputs to a running broker beside other clients.")
    ] = 850_000,
    cluster_inputs: Annotated[
        int, typer.Option(min=0, help="Number of inputs to a backup and a secondary beside other clients.")
    ] = 150_000,
    batch: Annotated[str | None, typer.Option(help="Send only this batch, for example amqp:17.")] = None,
    at_cluster: Annotated[
        bool, typer.Option("--at-cluster", help="Send the batch to a cluster. Used with --batch.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(help="Seed of all choices. Without it, a seed is drawn and printed.")
    ] = None,
    epoch: Annotated[int | None, typer.Option(help="Run only this epoch.")] = None,
    kernel: Annotated[
        str | None,
        typer.Option(help="Kernel to test, fast or plain. Without it, all kernels that are built are tested."),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of processes.")] = os.cpu_count() or 1,
    summary: Annotated[Path, typer.Option(help="File for the JSON summary.")] = OUT / "summary.json",
) -> None:
    """Hostile inputs from a seed; exit code 1 if anything gave way."""
    chosen = secrets.randbelow(2**32) if seed is None else seed
    available = kernels() if kernel is None else [kernel]
    console.print(f"seed {chosen}, kernels {', '.join(available)}", highlight=False)
    tasks = tasks_of(chosen, inputs, available)
    if epoch is not None:
        tasks = [Task(chosen, epoch, EPOCH_INPUTS, name) for name in available]
        socket_inputs = live_inputs = cluster_inputs = 0
    if batch is not None:
        tasks, socket_inputs = [], 0
        live_inputs, cluster_inputs = (0, 1) if at_cluster else (1, 0)
    begin = time.monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    result: dict[str, Any] = {"seed": chosen, "kernels": available}
    with Progress(*columns, TimeRemainingColumn(), console=console) as progress:
        if tasks:
            result["in_process"] = fuzz_nodes(tasks, jobs, progress)
        if socket_inputs:
            result["over_sockets"] = fuzz_broker(chosen, socket_inputs, progress)
        if live_inputs:
            result["live"] = fuzz_live(chosen, live_inputs, cluster=False, progress=progress, only=batch)
        if cluster_inputs:
            result["cluster"] = fuzz_live(chosen, cluster_inputs, cluster=True, progress=progress, only=batch)
    parts = [result[part] for part in ("in_process", "over_sockets", "live", "cluster") if part in result]
    result["inputs"] = sum(part["inputs"] for part in parts)
    result["failed"] = sum(len(part["failures"]) + len(part.get("differing_epochs", [])) for part in parts)
    result["seconds"] = round(time.monotonic() - begin, 1)
    summary.parent.mkdir(parents=True, exist_ok=True)
    summary.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps({key: result[key] for key in ("seed", "kernels", "inputs", "failed", "seconds")}))
    raise typer.Exit(1 if result["failed"] else 0)


if __name__ == "__main__":
    typer.run(main)
