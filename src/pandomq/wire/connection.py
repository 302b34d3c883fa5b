"""The broker's side of one AMQP connection: octets in, inputs out; methods in, octets out.

It decides what the peer may send in each state, the limits that both sides agree on in the handshake, and how a
connection ends. It never touches a socket or a clock, and knows only the numbers of channels: the broker opens and
closes them. The states and their transitions are in `states`.

Callers handle the inputs of `receive` in order, and send what `data_to_send` returns after each call, so that replies
are sent in the order of their requests. A Login, a Secured, an OpenVhost, a PeerClosed and a Faulted each need an
answer; octets that a client sends before the answer are held until then. In the state CLOSED the caller writes the
remaining octets and closes the socket.

`tick` checks timeouts, and is due at `due_ms`. Traffic sets flags and does not read the clock: `receive` and
`data_to_send` set them, and so does `wrote` for octets that were sent another way.
"""

from collections.abc import Callable
from typing import Any, Final, Protocol

from pandomq.errors import ConnectionFault, channel_error, command_invalid, login_refused, resource_error
from pandomq.ids import VhostName
from pandomq.kernel import Frame, PublishRun, ScanFault, SettleRun
from pandomq.limits import CLOSE_OK_WAIT_MS_MAX, HANDSHAKE_HELD_BYTES_MAX, INCOMPLETE_MESSAGES_MAX
from pandomq.methods import (
    ConnectionBlocked,
    ConnectionClose,
    ConnectionCloseOk,
    ConnectionOpen,
    ConnectionOpenOk,
    ConnectionSecure,
    ConnectionSecureOk,
    ConnectionStartOk,
    ConnectionTuneOk,
    ConnectionUnblocked,
    ConnectionUpdateSecret,
    Method,
    MethodInput,
)
from pandomq.wire.codec import HEARTBEAT, HEARTBEAT_FRAME, decode_method, encode_frame
from pandomq.wire.handshake import ACCEPTED_HEADERS, PROTOCOL_HEADER, find_end, next_method
from pandomq.wire.inputs import Faulted, Input, Login, Misgreeted, OpenVhost, PeerClosed, Secured, UpdateSecret
from pandomq.wire.offer import Agreed, Offer
from pandomq.wire.pulse import NEVER_MS, Pulse, Tick, next_beat_ms
from pandomq.wire.sasl import read_response
from pandomq.wire.states import HANDSHAKE, OVER, TRANSITIONS, ConnectionState

_OPEN_OK: Final = encode_frame(0, ConnectionOpenOk())
_CLOSE_OK: Final = encode_frame(0, ConnectionCloseOk())
_UNBLOCKED: Final = encode_frame(0, ConnectionUnblocked())


class FrameScanner(Protocol):
    """The kernel's scanner: octets to runs and frames."""

    def feed(self, data: bytes | memoryview) -> list[PublishRun | SettleRun | Frame | ScanFault]: ...

    @property
    def buffered_bytes(self) -> int: ...


class Connection(Pulse):
    """One client's connection."""

    __slots__ = (
        "_close_seen",
        "_held",
        "_make_scanner",
        "_offer",
        "_out",
        "_scanner",
        "_tells_login_failures",
        "_trusted",
        "_wants_blocked",
        "agreed",
        "decoded_bytes",
        "due_ms",
        "state",
    )

    def __init__(self, offer: Offer, make_scanner: Callable[[int, int], FrameScanner], now_ms: int) -> None:
        self.state = ConnectionState.HEADER
        self.agreed: Agreed = offer.proposal
        self.due_ms = now_ms + offer.handshake_ms_max
        self._offer = offer
        self.decoded_bytes = 0
        """Of methods that were decoded here, other than those of the handshake; the caller resets it."""
        self._make_scanner = make_scanner
        self._scanner: FrameScanner | None = None
        self._out: list[bytes] = []
        self._held = b""
        self._trusted = False
        self._tells_login_failures = False
        self._wants_blocked = False
        self._close_seen = False
        self._begin_pulse(now_ms)

    # Octets.

    def receive(self, data: bytes | memoryview) -> list[Input]:
        """Returns the inputs that these octets contain; a fault comes last, after everything valid before it."""
        self._heard = True
        if self._scanner is not None:
            return self._scan(self._scanner, data)
        if self.state in OVER:
            self._search_end(data)
            return []
        self._held += data
        return self._shake_hands()

    def data_to_send(self) -> bytes:
        """Returns the octets to write now; the next call returns later ones."""
        if not self._out:
            return b""
        data = b"".join(self._out)
        self._out.clear()
        # The tick that made a lone heartbeat has dated it already.
        self._wrote = self._wrote or data != HEARTBEAT
        return data

    def send(self, channel: int, method: Method) -> None:
        self._out.append(encode_frame(channel, method))

    @property
    def incomplete_bytes(self) -> int:
        """Bytes kept of incomplete frames and messages."""
        return 0 if self._scanner is None else self._scanner.buffered_bytes

    def close_with(self, fault: ConnectionFault) -> list[Input]:
        """Ends the connection like a fault of the client: incomplete input is dropped, and later frames are not
        parsed."""
        inputs: list[Input] = []
        self._scanner = None
        self._fail(fault, inputs)
        self._search_end(b"")
        return inputs

    # Answers of the broker.

    def challenge(self, challenge: bytes) -> list[Input]:
        """Sends a challenge after the login; returns the inputs that the peer had sent ahead, normally none."""
        assert self.state is ConnectionState.LOGIN
        self.state = ConnectionState.SECURING
        self.send(0, ConnectionSecure(challenge))
        return self._shake_hands()

    def accept_login(self, offer: Offer | None = None) -> list[Input]:
        """Accepts the login; returns the inputs that the client had sent ahead. Another offer replaces the one that the
        client got."""
        assert self.state is ConnectionState.LOGIN
        self._offer = offer or self._offer
        self.agreed = self._offer.proposal
        self._trusted = True
        self.state = ConnectionState.TUNING
        self._out.append(self._offer.tune_frame)
        return self._shake_hands()

    def refuse_login(self, login: Login, now_ms: int) -> None:
        """Refuses the login with a close, for clients that support that; for others the socket is closed, as AMQP
        specifies."""
        assert self.state is ConnectionState.LOGIN
        explanation = f"Login was refused using authentication mechanism {login.mechanism}."
        self._trusted = self._tells_login_failures
        self.close(login_refused(f"{explanation} For details see the broker logfile."), now_ms)

    def accept_vhost(self, now_ms: int) -> list[Input]:
        """Opens the connection; returns the inputs that the client had sent ahead."""
        assert self.state is ConnectionState.VHOST
        self.state = ConnectionState.RUNNING
        self._out.append(_OPEN_OK)
        self._heard_ms = self._wrote_ms = self._ticked_ms = now_ms
        self.due_ms = next_beat_ms(self.agreed.heartbeat_s, now_ms)
        self._scanner = scanner = self._make_scanner(self.agreed.frame_max, self._offer.message_bytes_max)
        held, self._held = self._held, b""
        return self._scan(scanner, held) if held else []

    def close(self, fault: ConnectionFault, now_ms: int) -> None:
        """Ends the connection for this reason. A client that has not logged in is not told the reason."""
        if self.state in (ConnectionState.CLOSING, ConnectionState.CLOSED):
            return
        if not self._trusted:
            self.hang_up()
            return
        if self.state is ConnectionState.VHOST:
            fault.at(ConnectionOpen.class_id, ConnectionOpen.method_id)
        self.state = ConnectionState.CLOSING
        self.due_ms = now_ms + CLOSE_OK_WAIT_MS_MAX
        self.send(0, ConnectionClose(fault.reply_code, fault.reply_text, fault.class_id, fault.method_id))
        if self._close_seen:
            # Both sides sent close at once: each gets its close-ok, and the peer's is still to come.
            self._out.append(_CLOSE_OK)
        if self._scanner is None:
            self._search_end(b"")

    def confirm_close(self) -> None:
        """Answers the peer's close; nothing is sent afterwards."""
        assert self.state is ConnectionState.ENDING
        self._out.append(_CLOSE_OK)
        self.hang_up()

    def block(self, reason: str) -> None:
        """Informs a client that supports this that its publishes are held back."""
        if self._wants_blocked and self.state is ConnectionState.RUNNING:
            self.send(0, ConnectionBlocked(reason))

    def unblock(self) -> None:
        if self._wants_blocked and self.state is ConnectionState.RUNNING:
            self._out.append(_UNBLOCKED)

    def hang_up(self) -> None:
        """Ends the connection: nothing is sent or received any more, and nothing is kept."""
        self.state = ConnectionState.CLOSED
        self.due_ms = NEVER_MS
        self._scanner = None
        self._held = b""

    # Time.

    def tick(self, now_ms: int) -> Tick:
        """Checks the handshake, the heartbeats and the wait for close-ok; to be called at due_ms or later."""
        if self.state in (ConnectionState.RUNNING, ConnectionState.ENDING):
            self.due_ms = next_beat_ms(self.agreed.heartbeat_s, now_ms, self.due_ms)
            asked = self._beat(self.agreed.heartbeat_s, now_ms)
            if asked is Tick.SEND:
                self._out.append(HEARTBEAT)
            elif asked is Tick.DROP:
                self.hang_up()
            return asked
        if self.state is ConnectionState.CLOSED or now_ms < self.due_ms:
            return Tick.NOTHING
        self.hang_up()
        return Tick.DROP

    def probe(self) -> None:
        """Sends a heartbeat now. If the machine at the other end has restarted, its system resets the connection."""
        self._out.append(HEARTBEAT)

    # Octets to inputs.

    def _shake_hands(self) -> list[Input]:
        inputs: list[Input] = []
        if self.state is ConnectionState.HEADER and len(self._held) >= len(PROTOCOL_HEADER):
            self._greet(inputs)
        try:
            while self.state in HANDSHAKE:
                payload, end = next_method(self._held)
                if not end:
                    break
                self._held = self._held[end:]
                if payload is not None:
                    self._method_0(decode_method(payload), inputs)
            if len(self._held) > HANDSHAKE_HELD_BYTES_MAX:
                raise resource_error("the client sent too much before the handshake was complete")
        except ConnectionFault as fault:
            self._fail(fault, inputs)
        if self.state in OVER:
            self._search_end(b"")
        return inputs

    def _greet(self, inputs: list[Input]) -> None:
        header = self._held[: len(PROTOCOL_HEADER)]
        if header in ACCEPTED_HEADERS:
            self._held = self._held[len(PROTOCOL_HEADER) :]
            self._out.append(self._offer.start_frame)
            self.state = ConnectionState.STARTING
        else:
            # The answer names the supported protocol, for any protocol of the client.
            self._out.append(PROTOCOL_HEADER)
            self.hang_up()
            inputs.append(Misgreeted(header))

    def _scan(self, scanner: FrameScanner, data: bytes | memoryview) -> list[Input]:
        inputs: list[Input] = []
        for item in self._bounded(scanner, scanner.feed(data)):
            if isinstance(item, Frame):
                self._frame(item, inputs)
            elif isinstance(item, ScanFault):
                # From here on the octets cannot be split into frames any more.
                self._scanner = None
                self._fail(ConnectionFault(*item), inputs)
                self._search_end(data)
            elif self.state is ConnectionState.RUNNING:
                inputs.append(item)
        return inputs

    def _bounded(
        self, scanner: FrameScanner, items: list[PublishRun | SettleRun | Frame | ScanFault]
    ) -> list[PublishRun | SettleRun | Frame | ScanFault]:
        # Channels interleave, and each may have an incomplete message: together they must not use up the memory.
        incomplete_max = INCOMPLETE_MESSAGES_MAX * (self._offer.message_bytes_max + self.agreed.frame_max)
        if scanner.buffered_bytes > incomplete_max:
            fault = resource_error(f"partly received messages take more than {incomplete_max} bytes")
            items.append(ScanFault(fault.reply_code, fault.reply_text, 0, 0))
        return items

    def _frame(self, frame: Frame, inputs: list[Input]) -> None:
        kind, channel, payload = frame
        if kind == HEARTBEAT_FRAME:
            return
        self.decoded_bytes += len(payload)
        try:
            if not channel:
                self._method_0(decode_method(payload), inputs)
            elif self.state is ConnectionState.RUNNING:
                inputs.append(MethodInput(channel, decode_method(payload)))
        except ConnectionFault as fault:
            self._fail(fault, inputs)

    def _search_end(self, data: bytes | memoryview) -> None:
        closes, confirms, self._held = find_end(self._held + data)
        if closes:
            self._peer_close()
        if confirms and self.state is ConnectionState.CLOSING:
            self.hang_up()

    def _fail(self, fault: ConnectionFault, inputs: list[Input]) -> None:
        if self.state not in OVER:
            self.state = ConnectionState.ENDING
            inputs.append(Faulted(fault.kept()))

    # Methods on channel 0.

    def _method_0(self, method: Method, inputs: list[Input]) -> None:
        next_state = TRANSITIONS.get(self.state, {}).get(type(method))
        if next_state is None:
            if self.state in OVER:
                return
            unexpected = channel_error(f"unexpected method in connection state {self.state.name.lower()}")
            raise unexpected.at(method.class_id, method.method_id)
        already_over = self.state in OVER
        match method:
            case ConnectionStartOk():
                inputs.append(self._login(method))
            case ConnectionSecureOk():
                inputs.append(Secured(method.response))
            case ConnectionTuneOk():
                self.agreed = self._offer.agree(method)
            case ConnectionOpen():
                inputs.append(OpenVhost(VhostName(method.virtual_host)))
            case ConnectionUpdateSecret():
                inputs.append(UpdateSecret(method.new_secret, method.reason))
            case ConnectionClose():
                self._peer_close()
                if not already_over:
                    inputs.append(PeerClosed(method.reply_code, method.reply_text))
            case ConnectionCloseOk():
                self.hang_up()
            case _:
                raise AssertionError(f"{method.amqp_name} has a transition but no meaning")
        self.state = next_state

    def _login(self, answer: ConnectionStartOk) -> Login:
        if answer.mechanism not in self._offer.mechanisms:
            raise command_invalid(f"invalid authentication mechanism '{answer.mechanism}'").at(
                answer.class_id, answer.method_id
            )
        capabilities: Any = answer.client_properties.get("capabilities")
        if isinstance(capabilities, dict):
            self._tells_login_failures = capabilities.get("authentication_failure_close") is True
            self._wants_blocked = capabilities.get("connection.blocked") is True
        user, password = read_response(answer.mechanism, answer.response)
        return Login(answer.mechanism, user, password, answer.client_properties)

    def _peer_close(self) -> None:
        # Answered once: after our own close if that is under way, else by confirm_close.
        if self.state is ConnectionState.CLOSING and not self._close_seen:
            self._out.append(_CLOSE_OK)
        self._close_seen = True
