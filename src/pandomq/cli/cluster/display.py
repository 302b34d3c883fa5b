"""The display of the cluster: a live table at a terminal, a line for each change in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Final, Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from pandomq.cli.cluster.plan import PlannedBroker
from pandomq.cli.cluster.polling import ClusterAnswers
from pandomq.cli.cluster.processes import Process
from pandomq.cli.output import cell, rich_table

COLUMNS: Final = ("name", "role", "amqp", "http", "pid", "in sync", "log", "commit", "lag", "")


class Display(Protocol):
    def __enter__(self) -> Display: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, answers: ClusterAnswers) -> None: ...

    def tell(self, text: str) -> None: ...


def display(places: Sequence[PlannedBroker], processes: Mapping[str, Process]) -> Display:
    return LiveTable(places, processes, Console()) if sys.stdout.isatty() else Lines(places, processes)


def state_of(place: PlannedBroker, process: Process | None, answers: ClusterAnswers) -> str:
    """The state of a broker in a few words."""
    answer = answers.by_broker[place.name]
    if process is not None and not process.runs and not answer.readiness:
        return process.end
    if not answer.readiness:
        return "starting" if process is not None else "not running"
    if answer.role is None:
        return answer.readiness
    return "ready" if answer.readiness.startswith("ready") else answer.readiness


def role_of(place: PlannedBroker, answers: ClusterAnswers) -> str:
    return answers.by_broker[place.name].role or ("" if place.primary else "secondary")


class LiveTable:
    def __init__(self, places: Sequence[PlannedBroker], processes: Mapping[str, Process], console: Console) -> None:
        self._places = places
        self._processes = processes
        self.console = console
        self._live = Live(console=console, auto_refresh=False)

    def __enter__(self) -> LiveTable:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def show(self, answers: ClusterAnswers) -> None:
        self._live.update(Group(Text(self._head(answers)), rich_table(COLUMNS, self._rows(answers))), refresh=True)

    def tell(self, text: str) -> None:
        self.console.print(Text(text))

    def _head(self, answers: ClusterAnswers) -> str:
        root = answers.root
        who = f"root {root}" if root else "no root"
        return f"cluster {answers.cluster_id or 'not created yet'}   term {answers.term}   {who}   ^C stops all\n"

    def _rows(self, answers: ClusterAnswers) -> list[list[object]]:
        members = answers.members
        rows: list[list[object]] = []
        for place in self._places:
            member = members.get(place.name, {})
            process = self._processes.get(place.name)
            rows.append(
                [
                    place.name,
                    role_of(place, answers),
                    place.address,
                    place.http,
                    process.pid if process is not None and process.runs else None,
                    member.get("in_sync"),
                    member.get("log_index"),
                    member.get("commit_index"),
                    member.get("lag_bytes"),
                    state_of(place, process, answers),
                ]
            )
        return rows


class Lines:
    """Prints the changes of each broker."""

    def __init__(self, places: Sequence[PlannedBroker], processes: Mapping[str, Process]) -> None:
        self._places = places
        self._processes = processes
        self._said: dict[str, str] = {}

    def __enter__(self) -> Lines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def show(self, answers: ClusterAnswers) -> None:
        for place in self._places:
            state = state_of(place, self._processes.get(place.name), answers)
            line = f"{place.name}\t{role_of(place, answers) or '-'}\t{place.address}\t{place.http}\t{cell(state)}"
            if self._said.get(place.name) != line:
                self._said[place.name] = line
                self.tell(line)

    def tell(self, text: str) -> None:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
