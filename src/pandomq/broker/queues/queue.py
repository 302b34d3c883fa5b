"""A queue as its declarer sees it: name, kind, owner and arguments. Its messages are in its kernel queue."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from pandomq import kernel
from pandomq.broker.queues.queue_arguments import STREAM
from pandomq.broker.queues.queue_settings import settings_of
from pandomq.broker.streams.stream import Stream
from pandomq.errors import resource_locked
from pandomq.trace_form import TRACE_STREAM

if TYPE_CHECKING:
    from pandomq.broker.administration.policies import Effect, Policy
    from pandomq.broker.client import Client
    from pandomq.broker.vhost import Vhost

NO_ARGUMENTS: Final[Mapping[str, Any]] = MappingProxyType({})


class Queue:
    __slots__ = (
        "arguments",
        "auto_delete",
        "durable",
        "exclusive_consumer",
        "honours_replicate",
        "inner",
        "kernel",
        "name",
        "owner",
        "policy",
        "settings",
        "stream",
        "used_ms",
        "user",
        "vhost",
    )

    def __init__(
        self,
        vhost: "Vhost",
        name: str,
        *,
        queue_id: int = 0,
        durable: bool = False,
        auto_delete: bool = False,
        arguments: Mapping[str, Any] = NO_ARGUMENTS,
        owner: "Client | None" = None,
        user: str,
        now_ms: int,
        inner: bool = False,
        honours_replicate: bool = False,
    ) -> None:
        self.vhost = vhost
        self.name = name
        self.durable = durable
        self.auto_delete = auto_delete
        self.arguments = arguments or NO_ARGUMENTS
        self.settings = settings_of(arguments)
        self.policy: Effect | None = None
        self.owner = owner
        """The connection an exclusive queue belongs to."""
        self.user = user
        self.inner = inner
        """No client can access it."""
        self.honours_replicate = honours_replicate
        """Whether `x-replicate`, or the policy's `replicate`, determines what is replicated."""
        self.used_ms = now_ms
        """The time at which the queue was last declared, polled with basic.get, or left by its last consumer: x-expires
        counts from then."""
        self.exclusive_consumer: kernel.Consumer | None = None
        self.kernel = kernel.Queue(vhost.engine, self, queue_id, durable)
        self.stream: Stream | None = None
        """The stream, if its messages stay."""
        if arguments:
            self._configure()
            if self.settings.type == STREAM:
                self.stream = Stream(
                    name, self.kernel, vhost.chunk_cache, vhost.offset_counts, vhost.stored_offsets_max
                )

    def follow(self, policy: "Effect | None") -> bool:
        """Applies the policy until the next call. True if that changes its settings."""
        self.policy = policy
        if policy is None:
            settings = settings_of(self.arguments)
        else:
            settings = settings_of(self.arguments, policy.definition) if self.arguments else policy.plain_settings
        if settings == self.settings:
            return False
        self.settings = settings
        self._configure()
        return True

    def _configure(self) -> None:
        self.settings.configure(self.kernel, local=self.is_local)

    @property
    def is_local(self) -> bool:
        """Whether it is durable, and yet only the root has its messages, while several brokers keep the log."""
        return self.durable and self.honours_replicate and self.settings.replicates_less

    def follow_trace(self, trace: kernel.Trace | None) -> None:
        """The trace collects the events of its messages; never those of the stream of traces itself."""
        if self.name != TRACE_STREAM:
            self.kernel.trace = trace
            self.kernel.label = self.name.encode("utf-8", "surrogateescape")

    @property
    def message_count(self) -> int:
        """Messages that consumers may get; of a stream: all of them, any number of times."""
        return self.kernel.ready_count if self.stream is None else self.stream.message_count

    @property
    def message_bytes(self) -> int:
        """The size of their bodies; of a stream: all that it keeps."""
        return self.kernel.ready_bytes if self.stream is None else self.stream.size_bytes

    def matched_by(self, policy: "Policy") -> bool:
        return policy.matches_queue(self)

    @property
    def resource(self) -> str:
        """Its name in error texts."""
        return f"queue '{self.name}' in vhost '{self.vhost.name}'"

    def check_access(self, client: "Client") -> None:
        """Raises ChannelFault (405) if it is another connection's."""
        if self.owner is not None and self.owner is not client:
            raise self.locked()

    def check_declared_by(self, client: "Client", exclusive: bool) -> None:
        """A second declare must agree about the owner, too."""
        if self.owner is not (client if exclusive else None):
            raise self.locked()

    def locked(self) -> Exception:
        return locked(self.resource)


def locked(resource: str) -> Exception:
    return resource_locked(
        f"cannot obtain exclusive access to locked {resource}. It could be originally declared on another "
        "connection or the exclusive property value does not match that of the original declaration."
    )
