"""The schedule of the demo: a secondary joins, the root is killed, another one takes over, the old one restarts."""

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
"""Shares of the time of publishing."""
SPARK_PATIENCE_S = 45.0
"""The kill of the root waits at most so much longer for an archive that has no rows yet."""


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
        """Whether all events have happened."""

    def go_on(self, elapsed_s: float) -> None:
        """The clients have published for `elapsed_s`."""
        self._elapsed_s = elapsed_s
        self._grove.insist_on_the_living()
        next(self._acts, None)

    def _run(self) -> Iterator[None]:
        while not self._grove.sight.root or self._elapsed_s < self._join_at_s:
            yield
        joined = self._grove.join()
        self._tell(f"{joined.name} is started as a secondary")
        while joined.name not in self._grove.sight.in_sync:
            yield
        self._crew.come_to_the_secondary()
        self._tell(f"{joined.name} has joined, and clients connect to it")
        while not self._crew.at_work_everywhere(self._account) or self._elapsed_s < self._kill_at_s:
            yield
        late_s = self._elapsed_s + SPARK_PATIENCE_S
        while self._jobs and not self._jobs.archived_rows and self._elapsed_s < late_s:
            yield
        # For a moment all brokers work.
        moment_s = self._elapsed_s + MOMENT_S
        while self._elapsed_s < moment_s:
            yield
        killed, killed_s = self._grove.root(), self._elapsed_s
        # This process notices the root's death at a time when the others may have noticed it already.
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
            self._tell("Spark rolls up the brokers' traces")
        self.over = True
