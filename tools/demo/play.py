"""What happens when: a secondary joins, the root is killed, another takes over, the old one returns."""

from __future__ import annotations

from collections.abc import Iterator

from tools.demo.account import Account
from tools.demo.crew import Crew
from tools.demo.display import Display
from tools.demo.grove import PRIMARIES, Grove
from tools.demo.jobs import Jobs
from tools.demo.story import Story

MOMENT_S = 0.5
JOIN_AT, KILL_AT, RETURN_AT = 0.1, 0.4, 0.65
"""Shares of the time in which is published."""
SPARK_PATIENCE_S = 45.0
"""The root lives so much longer for an archive that has nothing yet; then it is not waited for."""


class Play:
    def __init__(
        self,
        grove: Grove,
        crew: Crew,
        account: Account,
        story: Story,
        seconds: float,
        display: Display,
        jobs: Jobs | None,
    ) -> None:
        self._grove = grove
        self._crew = crew
        self._account = account
        self._story = story
        self._tell, self._say = display.tell, display.say
        self._jobs = jobs
        self._join_at_s, self._kill_at_s, self._return_at_s = (
            share * seconds for share in (JOIN_AT, KILL_AT, RETURN_AT)
        )
        self._acts: Iterator[None] = self._run()
        self._elapsed_s = 0.0
        self.over = False
        """All of it has happened."""

    def go_on(self, elapsed_s: float) -> None:
        """`elapsed_s` has been published."""
        self._elapsed_s = elapsed_s
        self._grove.insist_on_the_living()
        next(self._acts, None)

    def _run(self) -> Iterator[None]:
        while not self._grove.sight.root or self._elapsed_s < self._join_at_s:
            yield
        joined = self._grove.join()
        self._tell(f"{joined.name} is started, a secondary")
        while joined.name not in self._grove.sight.in_sync:
            yield
        self._crew.come_to_the_secondary()
        self._tell(f"{joined.name} has joined, and clients come to it")
        while not self._crew.at_work_everywhere(self._account) or self._elapsed_s < self._kill_at_s:
            yield
        late_s = self._elapsed_s + SPARK_PATIENCE_S
        while self._jobs and not self._jobs.archived_rows and self._elapsed_s < late_s:
            yield
        # For a moment all of them work.
        moment_s = self._elapsed_s + MOMENT_S
        while self._elapsed_s < moment_s:
            yield
        killed, killed_s = self._grove.root(), self._elapsed_s
        # Its death is known here only when others may have noticed already.
        self._story.killed_s = self._story.now_s
        self._grove.kill(killed)
        self._tell(f"kill -9 {killed.name}, the root", self._story.killed_s)
        while self._grove.sight.root in ("", killed.name):
            yield
        self._say(f"{self._grove.sight.root} is the root, term {self._grove.sight.term}")
        while self._elapsed_s < killed_s + self._return_at_s - self._kill_at_s:
            yield
        self._grove.bring_back(killed)
        self._tell(f"{killed.name} is started again")
        while len(self._grove.sight.in_sync) <= PRIMARIES:
            yield
        self._tell(f"{killed.name} has caught up: all four are in sync")
        if self._jobs:
            self._jobs.begin_rollup()
            self._tell("Spark rolls up what the brokers have traced")
        self.over = True
