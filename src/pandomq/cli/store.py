"""`pandomq store`: inspects a broker's store, checks it, repairs it, and copies it.

`inspect` and `backup` also work beside a running broker. `inspect` reads what a restart would read, `verify` reads
everything; neither changes anything. `repair` never drops anything silently: it keeps removed data in a file, and names
it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from pandomq.bench.measurements.journal import measure_journal
from pandomq.cli.output import Row, print_table
from pandomq.journal import events
from pandomq.journal.faults import StoreFault
from pandomq.journal.recovery.offline_scan import StoreReport
from pandomq.runtime.disk.disk_tools import Show, inspect_store, repair_store, store_in
from pandomq.runtime.disk.store_backup import back_up

store_app = typer.Typer(
    name="store", help="Inspect, verify, repair and back up the store of a broker.", no_args_is_help=True
)
_out = Console()
_console = Console(stderr=True)

Directories = Annotated[list[Path], typer.Argument(help="Data directories of brokers, for example pandomq-data/n1.")]
Directory = Annotated[Path, typer.Argument(help="Data directory of a broker, for example pandomq-data/n1.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


@store_app.command()
def inspect(directories: Directories, json: Json = False) -> None:
    """Show the contents of stores, and which of several is the newest. The broker may be running."""
    reports = {directory: _look(directory, json, deep=False) for directory in directories}
    newest = _newest(list(reports.values()))
    if json:
        _print(
            [{"directory": str(path), "newest": report in newest} | _plain(report) for path, report in reports.items()]
        )
        return
    print_table(_HEADERS, _overview(reports, newest))
    for path, report in reports.items():
        _print_troubles(path, report)
    if len(reports) > 1:
        _say(_verdict(reports, newest))


@store_app.command()
def verify(directories: Directories, json: Json = False) -> None:
    """Read the whole store and report all damage. The broker must be stopped. The exit status is 1 if there is any."""
    reports = {directory: _look(directory, json, deep=True) for directory in directories}
    if json:
        _print([{"directory": str(path), "sound": report.sound} | _plain(report) for path, report in reports.items()])
    else:
        for path, report in reports.items():
            _print_troubles(path, report)
            if report.sound:
                _say(f"{path}: no damage; entries up to {report.last_index}, {_size(report.size_bytes)}")
    if not all(report.sound for report in reports.values()):
        raise typer.Exit(1)


@store_app.command()
def repair(directory: Directory, json: Json = False) -> None:
    """Repair a store: rebuild what can be rebuilt, cut the log at the first damage, and keep the cut part in a side
    file. The broker must be stopped.
    """
    with _complaining(), _progress(json) as show:
        done = repair_store(directory, show)
    if json:
        _print({"directory": str(directory)} | msgspec.to_builtins(done))
        return
    for flaw in done.mended:
        _say(f"repaired: {flaw}")
    if done.cut_from:
        _say(f"cut off: entries {done.cut_from} to {done.cut_to}; they are kept in {store_in(directory) / done.aside}")
    if done.pages:
        kept = store_in(directory) / done.pages_aside
        _say(f"given up: {done.pages} damaged pages of messages; their bytes are kept in {kept}")
    for flaw in done.left:
        _say(f"still damaged: {flaw}")
    if not (done.mended or done.cut_from or done.pages or done.left):
        _say(f"{directory}: nothing to repair")


@store_app.command()
def backup(
    directory: Directory,
    target: Annotated[Path, typer.Argument(help="Target directory of the copy. It must be empty or not exist.")],
    json: Json = False,
) -> None:
    """Copy a store, even that of a running broker, and verify the copy.

    The copy contains everything that was confirmed before the backup started. `pandomq start --data TARGET` starts
    from it. It has the name and the cluster of the original broker: start it instead of that broker, not beside it.
    """
    with _complaining(), _progress(json) as show:
        report = back_up(directory, target, show)
    if json:
        _print({"directory": str(target)} | _plain(report))
        return
    _say(
        f"{target}: no damage; entries up to {report.last_index} of broker {report.node_name}, "
        f"{_size(report.size_bytes)}"
    )


@store_app.command()
def bench(
    directory: Annotated[
        Path, typer.Argument(help="Directory on the disk to measure. The files of the measurement are removed.")
    ],
    entry_bytes: Annotated[int, typer.Option(min=1, help="Size of an entry in bytes.")] = 1024,
    entries_per_batch: Annotated[int, typer.Option(min=1, help="Number of entries per sync.")] = 2000,
    total_mib: Annotated[int, typer.Option(min=16, help="Amount of data to write and to recover, in MiB.")] = 1024,
    json: Json = False,
) -> None:
    """Measure the write and recovery speed of a log on this disk."""
    found = measure_journal(
        directory,
        lambda stage: None if json else _console.print(f"{stage} …"),
        entry_bytes=entry_bytes,
        entries_per_batch=entries_per_batch,
        total_bytes=total_mib * 2**20,
    )
    if json:
        _print(msgspec.to_builtins(found))
        return
    rows = [(name.replace("_", " "), f"{value:,}") for name, value in msgspec.to_builtins(found).items()]
    print_table(("what", "value"), rows)


# The results.


def _look(directory: Path, json: bool, *, deep: bool) -> StoreReport:
    with _complaining(), _progress(json) as show:
        return inspect_store(directory, show, deep=deep)


def _newest(reports: list[StoreReport]) -> list[StoreReport]:
    """The highest by epoch, term and index; several if they are equal, none if they are not comparable."""
    usable = [report for report in reports if not report.fault and not report.new]
    if len({report.cluster_id for report in usable}) != 1:
        return []
    rank = max(report.rank for report in usable)
    newest = [report for report in usable if report.rank == rank]
    return newest if len({report.epoch_id for report in newest}) == 1 else []


def _verdict(reports: dict[Path, StoreReport], newest: list[StoreReport]) -> str:
    names = [str(path) for path, report in reports.items() if report in newest]
    if not names:
        return "No store is the newest: they belong to different clusters, or to different forced promotions."
    return f"Newest by (epoch, term, index): {', '.join(names)}"


_HEADERS: Final = ("directory", "broker", "cluster", "epoch", "term", "entries", "snapshots", "files", "size", "state")


def _overview(reports: dict[Path, StoreReport], newest: list[StoreReport]) -> list[Row]:
    rows: list[Row] = []
    for path, report in reports.items():
        if report.fault or report.new:
            rows.append((str(path), *["-"] * 8, "cannot be opened" if report.fault else "no store"))
            continue
        entries = f"{report.first_index} … {report.last_index}"
        if report.known_index > report.last_index:
            entries += f" (of {report.known_index})"
        rows.append(
            (
                str(path),
                report.node_name,
                report.cluster_id,
                report.epoch,
                f"{report.known_term} (announced: {report.term})",
                entries,
                ", ".join(map(str, report.snapshots)) or "-",
                len(report.files),
                _size(report.size_bytes),
                "newest" if len(reports) > 1 and report in newest else "",
            )
        )
    return rows


def _print_troubles(path: Path, report: StoreReport) -> None:
    if report.fault:
        _say(f"{path}: {report.fault}")
    if report.damage is not None:
        damage = report.damage
        _say(f"{path}: corrupt: {damage.file} at offset {damage.offset}: {damage.text}")
        further = "" if damage.end_known else " at least"
        _say(f"  entries up to {report.last_index} are intact; the log continued to {damage.known_index}{further}")
    if report.torn is not None:
        torn = report.torn
        _say(
            f"{path}: {torn.file} ends with {torn.cut_bytes} bytes of an unfinished write, from offset {torn.offset} on"
        )
    for flaw in report.flaws:
        _say(f"{path}: damaged: {flaw.file} at offset {flaw.offset}: {flaw.text}")
    for file in report.aside:
        _say(f"{path}: {file} contains entries that were cut off the log")


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 2**20:,.1f} MiB"


# Output.


def _plain(report: StoreReport) -> dict[str, object]:
    plain: dict[str, object] = msgspec.to_builtins(report)
    return plain


def _say(text: str) -> None:
    _out.print(text, soft_wrap=True, markup=False, highlight=False)


def _print(value: object) -> None:
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value)).decode() + "\n")


@contextmanager
def _complaining() -> Iterator[None]:
    """Reports an unusable store as a message for the user, without a traceback."""
    try:
        yield
    except StoreFault as fault:
        _console.print(f"pandomq: {fault}", soft_wrap=True, markup=False, highlight=False)
        raise typer.Exit(2) from fault


@contextmanager
def _progress(quiet: bool) -> Iterator[Show]:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(binary_units=True), TimeElapsedColumn())
    with Progress(*columns, console=_console, transient=True, disable=quiet or not _console.is_terminal) as display:
        tasks: dict[events.RecoveryStage, TaskID] = {}

        def show(progress: events.RecoveryProgress) -> None:
            if progress.stage not in tasks:
                tasks[progress.stage] = display.add_task(progress.stage.value)
            display.update(tasks[progress.stage], completed=progress.done_bytes, total=progress.total_bytes)

        yield show
