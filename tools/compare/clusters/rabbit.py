"""Three nodes of Debian's RabbitMQ with its defaults; only names, places, ports and the user are ours."""

import os
import subprocess
import time
from collections.abc import Mapping, Sequence

from tools.compare.clusters import limits
from tools.compare.clusters.cluster import Cluster, serves
from tools.compare.clusters.member import PASSWORD, USER, Member
from tools.compare.peers.ledger import RABBITMQ
from tools.compare.peers.rabbit import RABBITMQ_SCRIPT

_SETTLE_S = 3.0
"""A node serves clients before its queues' followers have caught up, and does not report when they have."""


class RabbitCluster(Cluster):
    system = RABBITMQ

    def start(self) -> None:
        # One after the other: nodes that start at once may each form a cluster of their own.
        for member in self.members:
            self.start_member(member)
            self._wait_for(member)
        self.wait_until_whole()

    def _wait_for(self, member: Member) -> None:
        alone = RabbitCluster([member])
        alone.wait_until_whole()

    def whole(self) -> bool:
        return all(serves(member.url) for member in self.members)

    def mend(self) -> None:
        # A node that comes back without having ended counts as a partition, and waits for an operator; so it is
        # restarted.
        for member in self.members:
            if member.disturbed:
                member.disk.resume()
                member.kill()
        super().mend()
        time.sleep(_SETTLE_S)

    def leader(self, turn: int) -> Member:
        # A queue's leader is the node at which it was declared.
        return self.members[turn % len(self.members)]

    def wait_for(self, member: Member, queue: str) -> None:
        # One call that waits inside a node: each start of this tool costs seconds of processor time.
        wait = f"""
        Node = '{_node_name(member)}', Queue = {{resource, <<"/">>, queue, <<"{queue}">>}},
        [{{_, _, _, _, Wanted, _, _}}] = ets:lookup(ra_metrics, Queue),
        Wait = fun Again() ->
            case rpc:call(Node, ets, lookup, [ra_metrics, Queue]) of
                [{{_, _, _, _, Found, _, _}}] when Found >= Wanted -> ok;
                _ -> timer:sleep(200), Again()
            end
        end,
        Wait().
        """
        asked = next(other for other in self.members if other is not member and other.alive)
        _, variables = self.command(asked)
        tool = str(RABBITMQ_SCRIPT.with_name("rabbitmqctl"))
        try:
            done = subprocess.run(
                [*asked.place.prefix, tool, "--timeout", f"{limits.CATCH_UP_TIMEOUT_S:.0f}", "eval", wait],
                env={**os.environ, **variables},
                capture_output=True,
                text=True,
                timeout=limits.CATCH_UP_TIMEOUT_S + limits.COMMAND_TIMEOUT_S,
            )
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"{member.name} has not caught up") from None
        if done.returncode:
            raise RuntimeError(f"{member.name} has not caught up: {(done.stdout + done.stderr).strip()[-200:]}")

    def command(self, member: Member) -> tuple[Sequence[str], Mapping[str, str]]:
        directory, place = member.disk.directory, member.place
        plugins = directory / "enabled_plugins"
        plugins.write_text("[].\n")
        (directory / "rabbitmq.conf").write_text(self._configuration(member))
        cookie = directory / ".erlang.cookie"
        if not cookie.exists():
            cookie.write_text("PANDOMQBENCH")
            cookie.chmod(0o400)
        return [str(RABBITMQ_SCRIPT)], {
            "HOME": str(directory),
            "RABBITMQ_USE_LONGNAME": "true",
            "RABBITMQ_NODENAME": _node_name(member),
            "RABBITMQ_DIST_PORT": str(place.dist_port),
            "RABBITMQ_MNESIA_BASE": str(directory / "mnesia"),
            "RABBITMQ_LOG_BASE": str(member.disk.logs),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(plugins),
            "RABBITMQ_CONF_ENV_FILE": str(directory / "none.conf"),
            "RABBITMQ_CONFIG_FILE": str(directory / "rabbitmq.conf"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(directory / "none.config"),
            "ERL_EPMD_PORT": str(place.epmd_port),
            "ERL_EPMD_ADDRESS": place.host,
        }

    def _configuration(self, member: Member) -> str:
        nodes = "\n".join(
            f"cluster_formation.classic_config.nodes.{number} = {_node_name(other)}"
            for number, other in enumerate(self.members, start=1)
        )
        return f"""listeners.tcp.1 = {member.place.amqp}
default_user = {USER}
default_pass = {PASSWORD}
loopback_users = none
cluster_formation.peer_discovery_backend = classic_config
cluster_formation.randomized_startup_delay_range.min = 0
cluster_formation.randomized_startup_delay_range.max = 1
{nodes}
"""


def _node_name(member: Member) -> str:
    return f"{member.name}@{member.place.host}"
