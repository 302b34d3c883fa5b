"""The methods of class connection (10), on channel 0."""

from pandomq.methods.layout import Long, LongString, Method, Octet, Short, ShortString, Table, WireType, method


@method(10, 10, synchronous=True)
class ConnectionStart(Method, frozen=True):
    version_major: Octet
    version_minor: Octet
    server_properties: Table
    mechanisms: LongString
    locales: LongString


@method(10, 11)
class ConnectionStartOk(Method, frozen=True):
    client_properties: Table
    mechanism: ShortString
    response: LongString
    locale: ShortString


@method(10, 20, synchronous=True)
class ConnectionSecure(Method, frozen=True):
    challenge: LongString


@method(10, 21)
class ConnectionSecureOk(Method, frozen=True):
    response: LongString


@method(10, 30, synchronous=True)
class ConnectionTune(Method, frozen=True):
    channel_max: Short
    frame_max: Long
    heartbeat: Short


@method(10, 31)
class ConnectionTuneOk(Method, frozen=True):
    channel_max: Short
    frame_max: Long
    heartbeat: Short


@method(10, 40, synchronous=True, after=(WireType.SHORT_STRING, WireType.BIT))
class ConnectionOpen(Method, frozen=True):
    virtual_host: ShortString


@method(10, 41, before=(WireType.SHORT_STRING,))
class ConnectionOpenOk(Method, frozen=True):
    pass


@method(10, 50, synchronous=True)
class ConnectionClose(Method, frozen=True):
    reply_code: Short
    reply_text: ShortString
    failed_class_id: Short
    failed_method_id: Short


@method(10, 51)
class ConnectionCloseOk(Method, frozen=True):
    pass


@method(10, 60)
class ConnectionBlocked(Method, frozen=True):
    reason: ShortString


@method(10, 61)
class ConnectionUnblocked(Method, frozen=True):
    pass


@method(10, 70, synchronous=True)
class ConnectionUpdateSecret(Method, frozen=True):
    new_secret: LongString
    reason: ShortString


@method(10, 71)
class ConnectionUpdateSecretOk(Method, frozen=True):
    pass
