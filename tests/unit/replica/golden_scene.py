"""Scenarios as readable text: in `golden/*.txt` each line that begins with `$` is a command, and beneath it are the
messages between the brokers and their actions that follow from it.

    python -m tests.unit.replica.golden_scene      writes the current behaviour; a person judges the difference

Repetitions are left out: greetings, heartbeats, repeated messages, and answers with nothing new. A lost message has
`-x` instead of an arrow.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pandomq.ids import NodeName
from pandomq.replica.effects import Alarm, Committed, Effect, RoleChanged, Serve, SteppedDown
from pandomq.replica.members.membership import Membership
from pandomq.replica.protocol.entries import EpochBegins, LearnerAdmitted, LogEntry, Members, TermBegins, decode_entry
from pandomq.replica.protocol.messages import (
    Admit,
    Append,
    Appended,
    AppendRejected,
    AskVote,
    ReleasePromise,
    ReplicaMessage,
    TakeOver,
    Vote,
)
from tests.unit.replica.world import Node, World

GOLDEN = Path(__file__).parent / "golden"
COMMAND = "$ "


class Scene:
    def __init__(self) -> None:
        self._world: World | None = None
        self._lines: list[str] = []
        self._acknowledged: dict[tuple[str, str], tuple[int, int]] = {}

    @property
    def world(self) -> World:
        assert self._world is not None, "`brokers` comes first"
        return self._world

    def do(self, command: str) -> list[str]:
        """Returns the lines that follow from this command."""
        verb, *words = command.split()
        self._lines = []
        COMMANDS[verb](self, words)
        return self._lines

    # Commands.

    def brokers(self, names: list[str]) -> None:
        """Names; in brackets those who are no members yet."""
        voters = [name for name in names if not name.startswith("(")]
        self._world = world = World([name.strip("()") for name in names], voters=voters)
        send, told = world.send, world.checkers.told

        def heard(sender: NodeName, peer: NodeName, message: ReplicaMessage) -> None:
            self._say(sender, peer, message)
            send(sender, peer, message)

        def noted(node: Node, effect: Effect) -> None:
            self._note(node, effect)
            told(node, effect)

        world.send = heard  # type: ignore[method-assign]
        world.checkers.told = noted  # type: ignore[method-assign]

    def elect(self, words: list[str]) -> None:
        self.world.elect(*words)

    def follow(self, words: list[str]) -> None:
        """The same, without a word of how."""
        self.world.elect(*words)
        self._lines.clear()

    def propose(self, words: list[str]) -> None:
        node, *payloads = words
        self.world[node].propose(*(payload.encode() for payload in payloads))

    def settle(self, _words: list[str]) -> None:
        self.world.settle()

    def wait(self, words: list[str]) -> None:
        self.world.advance(int(words[0]))

    def crash(self, words: list[str]) -> None:
        for name in words:
            self.world[name].crash()

    def start(self, words: list[str]) -> None:
        for name in words:
            self.world[name].start()

    def isolate(self, words: list[str]) -> None:
        self.world.isolate(*words)

    def heal(self, _words: list[str]) -> None:
        self.world.heal()

    def stall(self, words: list[str]) -> None:
        """Disks do nothing any more."""
        for name in words:
            self.world[name].disk_works = False

    def go_on(self, words: list[str]) -> None:
        for name in words:
            self.world[name].disk_works = True

    def hand_over(self, words: list[str]) -> None:
        root, successor = words
        self.world[root].replica.hand_over(NodeName(successor))
        self.world[root].do_effects()

    def members(self, words: list[str]) -> None:
        root, *names = words
        self.world[root].replica.change_members(World.members(names))
        self.world[root].do_effects()

    def show(self, _words: list[str]) -> None:
        """Everybody's role, term, log and what of it is committed."""
        for node in self.world.nodes.values():
            if not node.up:
                self._lines.append(f"  {node.name}  is down")
                continue
            view = node.replica.view()
            log = [_entry(entry) for entry in node.store.memory.entries]
            log.insert(view.commit_index, "|")
            self._lines.append(f"  {node.name}  {view.role.value}, term {view.term}: {' '.join(log)}")

    # The written lines.

    def _say(self, sender: str, peer: str, message: ReplicaMessage) -> None:
        text = self._words_of(sender, peer, message)
        arrives = self.world[peer].up and (sender, peer) not in self.world.cut_links
        line = f"  {sender} {'->' if arrives else '-x'} {peer}  {text}"
        if text and line not in self._lines:
            self._lines.append(line)

    def _words_of(self, sender: str, peer: str, message: ReplicaMessage) -> str:
        match message:
            case AskVote(candidacy=term, pre=pre, end=end):
                question = "would you elect me" if pre else "elect me"
                return f"{question} in term {term}? my log ends at {end.term}:{end.index}"
            case Vote(candidacy=term, pre=pre, granted=granted):
                would = ("I would" if granted else "I would not") + " in" if pre else "in"
                return f"{'yes' if granted else 'no'}, {would} term {term}"
            case Append(entries=entries, prev_index=index, prev_term=term) if entries:
                return f"after {term}:{index} come {' '.join(map(_entry, entries))}"
            case Appended(received_index=received, synced_index=synced):
                known = self._acknowledged.get((sender, peer))
                self._acknowledged[sender, peer] = (received, synced)
                return "" if known == (received, synced) else f"I have {received}, and on disk {synced}"
            case AppendRejected(prev_index=index, last_index=last):
                return f"I do not have what is before {index + 1}; try after {last}"
            case Admit():
                return "you are admitted"
            case ReleasePromise():
                return "I am no longer root"
            case TakeOver(last_index=last):
                return f"take over, you have all up to {last}"
            case _:
                return ""

    def _note(self, node: Node, effect: Effect) -> None:
        match effect:
            case RoleChanged(role, term, root):
                text = f"is {role.value} in term {term}" + ("" if root in (None, node.name) else f", follows {root}")
            case Serve(_, index):
                text = f"serves from {index} on"
            case SteppedDown(reason):
                text = f"steps down: {reason}"
            case Committed(index):
                text = f"knows that {index} is committed"
            case Alarm(kind, raised):
                text = f"{'raises' if raised else 'ends'} the alarm {kind.value}"
            case _:
                return
        self._lines.append(f"  {node.name}  {text}")


COMMANDS: dict[str, Callable[[Scene, list[str]], None]] = {
    "brokers": Scene.brokers,
    "elect": Scene.elect,
    "follow": Scene.follow,
    "propose": Scene.propose,
    "settle": Scene.settle,
    "wait": Scene.wait,
    "crash": Scene.crash,
    "start": Scene.start,
    "isolate": Scene.isolate,
    "heal": Scene.heal,
    "stall": Scene.stall,
    "go-on": Scene.go_on,
    "hand-over": Scene.hand_over,
    "members": Scene.members,
    "show": Scene.show,
}


def _entry(entry: LogEntry) -> str:
    own = decode_entry(entry.payload)
    match own:
        case TermBegins():
            text = "begins"
        case Members(membership):
            text = f"members({_sets(membership)})"
        case LearnerAdmitted(name):
            text = f"welcome({name})"
        case EpochBegins(epoch):
            text = f"epoch({epoch})"
        case _:
            text = entry.payload.decode()
    return f"{entry.term}:{text}"


def _sets(membership: Membership) -> str:
    return " and ".join(",".join(names) for names in membership.sets)


def play(text: str) -> str:
    """The same text with what happens now."""
    scene = Scene()
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith(COMMAND):
            lines += [line, *scene.do(line.removeprefix(COMMAND))]
        elif not line.startswith("  "):
            lines.append(line)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for path in sorted(GOLDEN.glob("*.txt")):
        path.write_text(play(path.read_text()))
