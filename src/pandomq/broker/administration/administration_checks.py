"""Whether a command of an administrator can be carried out, in RabbitMQ's words where it has any.

Faults have the code 404 if the object of the command does not exist, and 406 for everything else; their texts have no
prefix, as they are shown to people and not to AMQP clients.
"""

from typing import TYPE_CHECKING, Any, assert_never

import msgspec

from pandomq import limits
from pandomq.broker.administration import passwords, policy_definition
from pandomq.broker.administration.pattern_syntax import PatternError
from pandomq.broker.administration.patterns import compile_pattern
from pandomq.broker.administration.permissions import name_pattern, topic_pattern
from pandomq.broker.administration.policies import APPLY_TO
from pandomq.broker.administration.quotas import USER_LIMITS, VHOST_LIMITS
from pandomq.broker.field_text import term
from pandomq.broker.log.commands import (
    AdministrativeCommand,
    DeletePermissions,
    DeletePolicy,
    DeleteTopicPermissions,
    DeleteUser,
    DeleteVhost,
    PutLimits,
    PutPermissions,
    PutPolicy,
    PutTopicPermissions,
    PutTracing,
    PutUser,
    PutVhost,
)
from pandomq.errors import Fault
from pandomq.trace_form import TRACE_STREAM

if TYPE_CHECKING:
    from pandomq.broker.state import ReplicatedState
    from pandomq.broker.vhost import Vhost

_PRIORITY_MAX = 2**31 - 1
_LIMIT_MAX = 2**53


def check(state: "ReplicatedState", command: AdministrativeCommand) -> None:
    """Raises Fault."""
    match command:
        case PutUser():
            _check_user(state, command)
        case DeleteUser():
            _require_user(state, command.name)
        case PutVhost():
            _check_vhost(state, command)
        case PutTracing():
            _check_tracing(_require_vhost(state, command.vhost), command.sample)
        case DeleteVhost():
            _require_vhost(state, command.vhost)
        case PutPermissions():
            _check_permissions(state, command)
        case PutTopicPermissions():
            _check_topic_permissions(state, command)
        case DeletePermissions() | DeleteTopicPermissions():
            _check_withdrawal(state, command)
        case PutPolicy():
            _check_policy(_require_vhost(state, command.vhost), command)
        case DeletePolicy():
            if _require_vhost(state, command.vhost).policies.find(command.name, command.operator) is None:
                raise _not_found(f"no policy '{command.name}' in vhost '{command.vhost}'")
        case PutLimits():
            _check_limits(state, command)
        case _:
            assert_never(command)


def _check_user(state: "ReplicatedState", command: PutUser) -> None:
    _check_name("user name", command.name, limits.USER_NAME_BYTES_MAX)
    _check_tags(command.tags)
    wrong = passwords.what_is_wrong(command.password_hash, command.hashing)
    if wrong is not None:
        raise _invalid(wrong)
    if command.name not in state.users and len(state.users) >= limits.USERS_MAX:
        raise _invalid(f"the maximum number of users ({limits.USERS_MAX}) is reached: delete one first")


def _check_vhost(state: "ReplicatedState", command: PutVhost) -> None:
    _check_name("vhost name", command.vhost, limits.VHOST_NAME_BYTES_MAX)
    _check_tags(command.tags)
    _check_text("description", command.description, limits.DESCRIPTION_BYTES_MAX)
    if command.vhost not in state.vhosts and len(state.vhosts) >= limits.VHOSTS_MAX:
        raise _invalid(f"the maximum number of vhosts ({limits.VHOSTS_MAX}) is reached: delete one first")


def _check_tracing(vhost: "Vhost", sample: float) -> None:
    if not 0 <= sample <= 1:
        raise _invalid(f"a sample must be between 0 and 1, not {sample}")
    queue = vhost.queues.get(TRACE_STREAM)
    if sample and queue is not None and queue.stream is None:
        raise _invalid(f"'{TRACE_STREAM}' is reserved for traces, but a queue with this name exists: delete it first")


def _check_permissions(state: "ReplicatedState", command: PutPermissions) -> None:
    _require_vhost(state, command.vhost)
    _require_user(state, command.user)
    for pattern in (command.configure, command.write, command.read):
        _check_pattern(pattern)


def _check_withdrawal(state: "ReplicatedState", command: DeletePermissions | DeleteTopicPermissions) -> None:
    access = _require_vhost(state, command.vhost).access.get(command.user)
    _require_user(state, command.user)
    if isinstance(command, DeletePermissions):
        found = access is not None and access.permissions is not None
    elif command.exchange:
        found = access is not None and command.exchange in access.topics
    else:
        found = access is not None and bool(access.topics)
    if not found:
        raise _not_found(f"user '{command.user}' does not have these permissions in vhost '{command.vhost}'")


def _check_topic_permissions(state: "ReplicatedState", command: PutTopicPermissions) -> None:
    vhost = _require_vhost(state, command.vhost)
    _require_user(state, command.user)
    _check_name("exchange name", command.exchange, limits.EXCHANGE_NAME_BYTES_MAX)
    for pattern in (command.write, command.read):
        _check_pattern(pattern)
        try:
            topic_pattern(pattern, command.user, command.vhost)
        except PatternError as error:
            raise _invalid(f"with the names in it, regular expression '{pattern}' is invalid: {error}") from None
    access = vhost.access.get(command.user)
    known = () if access is None else access.topics
    if command.exchange not in known and len(known) >= limits.TOPIC_PERMISSIONS_PER_USER_MAX:
        raise _invalid(
            f"user '{command.user}' has {len(known)} topic permissions in vhost '{command.vhost}', which is the limit: "
            "delete one first"
        )


def _check_policy(vhost: "Vhost", command: PutPolicy) -> None:
    _check_name("policy name", command.name, limits.POLICY_NAME_BYTES_MAX)
    is_new = vhost.policies.find(command.name, command.operator) is None
    if is_new and len(vhost.policies) >= limits.POLICIES_PER_VHOST_MAX:
        raise _invalid(f"vhost '{vhost.name}' has {len(vhost.policies)} policies, which is the limit: delete one first")
    wrong = []
    if abs(command.priority) > _PRIORITY_MAX:
        wrong.append(f"priority should be a number of at most {_PRIORITY_MAX}, actually was {command.priority}")
    try:
        compile_pattern(command.pattern)
    except PatternError as error:
        wrong.append(f"pattern should be regular expression but is invalid: {error}")
    if command.apply_to not in APPLY_TO:
        wrong.append(
            f"apply-to '{command.apply_to}' unrecognised; should be one of: 'queues', 'classic_queues', "
            "'quorum_queues', 'streams', 'exchanges', or 'all'"
        )
    definition = policy_definition.what_is_wrong(_decoded(command.definition), operator=command.operator)
    if definition is not None:
        wrong.append(definition)
    if wrong:
        raise _validation_failed(*wrong)


def _decoded(definition: bytes) -> Any:
    if len(definition) > limits.POLICY_DEFINITION_BYTES_MAX:
        raise _validation_failed(f"definition is longer than {limits.POLICY_DEFINITION_BYTES_MAX} bytes")
    try:
        return msgspec.json.decode(definition)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _invalid(f"Could not parse JSON document: {error}") from None


def _check_limits(state: "ReplicatedState", command: PutLimits) -> None:
    if command.scope == "user":
        _require_user(state, command.name)
        known, what = USER_LIMITS, "user-limits"
    else:
        _require_vhost(state, command.name)
        known, what = VHOST_LIMITS, "limits"
    for name, value in command.values.items():
        if name not in known:
            raise _validation_failed(f"Unrecognised terms [{{{term(name)},{term(value)}}}] in {what}")
        if value is not None and (type(value) is not int or abs(value) > _LIMIT_MAX):
            raise _validation_failed(f"{name} should be a number, actually was {policy_definition.json_term(value)}")


# Objects that must exist.


def _require_user(state: "ReplicatedState", name: str) -> None:
    if name not in state.users:
        raise _not_found(f"no user '{name}'")


def _require_vhost(state: "ReplicatedState", name: str) -> "Vhost":
    vhost = state.vhosts.get(name)
    if vhost is None:
        raise _not_found(f"no vhost '{name}'")
    return vhost


# Conditions that must hold.


def _check_name(what: str, name: str, bytes_max: int) -> None:
    if not name:
        raise _invalid(f"the {what} is empty")
    _check_text(what, name, bytes_max)


def _check_text(what: str, text: str, bytes_max: int) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise _invalid(f"the {what} is not valid Unicode") from None
    if size > bytes_max:
        raise _invalid(f"the {what} has {size} bytes: at most {bytes_max} are allowed")


def _check_tags(tags: tuple[str, ...]) -> None:
    if len(tags) > limits.TAGS_MAX:
        raise _invalid(f"the user would have {len(tags)} tags: at most {limits.TAGS_MAX} are allowed")
    for tag in tags:
        _check_name("tag", tag, limits.TAG_BYTES_MAX)


def _check_pattern(pattern: str) -> None:
    _check_text("pattern", pattern, limits.PATTERN_BYTES_MAX)
    try:
        name_pattern(pattern)
    except PatternError as error:
        raise _invalid(f"regular expression '{pattern}' is invalid: {error}") from None


def _invalid(text: str) -> Fault:
    return Fault(406, text)


def _validation_failed(*texts: str) -> Fault:
    return Fault(406, "".join(("Validation failed\n\n", *(f"{text}\n" for text in texts))))


def _not_found(text: str) -> Fault:
    return Fault(404, text)
