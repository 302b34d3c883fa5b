"""Staged batches on the data port: stage, commit, drop, last_batch. Only the root handles these requests."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pandomq import data_form
from pandomq.broker.staging.names import StagingAttempt
from pandomq.broker.staging.staging import Chosen
from pandomq.limits import STAGED_ATTEMPTS_MAX, STAGED_BATCH_MAX, STAGED_PART_BYTES_MAX, STAGED_PARTITION_MAX
from pandomq.node.data.fields import number, rows, text
from pandomq.node.data.refusals import RequestRefused, bad_request, not_found, not_now

if TYPE_CHECKING:
    from pandomq.broker.staging.staging import Staging
    from pandomq.data_form import Fields
    from pandomq.node.data.session import DataSession, Responder

_ATTEMPT: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_UNROUTABLE: Final = ("count", "fail")
_ROW: Final = ("partition", "attempt", "parts")


def stage(client: DataSession, fields: Fields, payload: bytes, answer: Responder) -> None:
    staging = _staging(client)
    held_back = client.services.held_back()
    if held_back is not None:
        raise not_now(held_back)
    if len(payload) > STAGED_PART_BYTES_MAX:
        raise RequestRefused(
            data_form.TOO_LARGE, f"a part is limited to {STAGED_PART_BYTES_MAX} bytes, but has {len(payload)}"
        )
    vhost = client.vhost
    if "queue" in fields and text(fields, "queue") not in vhost.queues:
        raise not_found(f"no queue '{fields['queue']}' in vhost '{vhost.name}'")
    attempt = _attempt_of(fields, number(fields, "partition", STAGED_PARTITION_MAX), fields.get("attempt"))
    staging.stage(
        vhost,
        client.access,
        attempt,
        number(fields, "part"),
        payload,
        lambda decided: answer.ok({"decided": decided}),
        client.services.now_ms,
        routed=_fails_unroutable(fields),
    )


def commit(client: DataSession, fields: Fields, payload: bytes, answer: Responder) -> None:
    staging = _staging(client)
    chosen = []
    for row in rows(fields, "attempts", STAGED_ATTEMPTS_MAX):
        named = _named(row, len(_ROW))
        attempt = _attempt_of(fields, number(named, "partition", STAGED_PARTITION_MAX), named["attempt"])
        chosen.append(Chosen(attempt.partition, attempt.name, number(named, "parts")))
    vhost, user = client.vhost, client.user
    query, batch = _query_of(fields), number(fields, "batch", STAGED_BATCH_MAX)

    def published() -> None:
        count = staging.expansion.unroutable_of(vhost.name, user, query, batch)
        answer.ok({"unroutable": count} if count else {})

    staging.commit(vhost, client.access, query, batch, chosen, published, answer.refuse, client.services.now_ms)


def drop(client: DataSession, fields: Fields, payload: bytes, answer: Responder) -> None:
    staging = _staging(client)
    named = [_named(row, len(_ROW) - 1) for row in rows(fields, "attempts", STAGED_ATTEMPTS_MAX)]
    attempts = [_attempt_of(fields, number(row, "partition", STAGED_PARTITION_MAX), row["attempt"]) for row in named]
    staging.drop(client.vhost, client.user, attempts, answer.ok, client.services.now_ms)


def last_batch(client: DataSession, fields: Fields, payload: bytes, answer: Responder) -> None:
    staging = _staging(client)
    staging.last_batch(
        client.vhost, client.user, _query_of(fields), lambda batch: answer.ok({"batch": batch}), client.services.now_ms
    )


def _fails_unroutable(fields: Fields) -> bool:
    """Whether unroutable messages cause a refusal of the part; otherwise they are counted when they are published."""
    word: object = fields.get("unroutable", _UNROUTABLE[0])
    if word not in _UNROUTABLE:
        raise bad_request(f"'unroutable' must be one of {', '.join(_UNROUTABLE)}")
    return word == "fail"


def _staging(client: DataSession) -> Staging:
    client.services.demand_root(tls=client.tls)
    return client.services.broker.staging


def _named(row: list[Any], size: int) -> Fields:
    if len(row) != size:
        raise bad_request(f"each attempt must consist of {', '.join(_ROW[:size])}")
    return dict(zip(_ROW[:size], row, strict=True))


def _attempt_of(fields: Fields, partition: int, name: object) -> StagingAttempt:
    if not isinstance(name, str) or _ATTEMPT.fullmatch(name) is None:
        raise bad_request("the name of an attempt must consist of 1 to 64 letters, digits, - and _")
    return StagingAttempt(number(fields, "batch", STAGED_BATCH_MAX), partition, name, _query_of(fields))


def _query_of(fields: Fields) -> str:
    query = text(fields, "query")
    if not query:
        raise bad_request("the name of the query must not be empty")
    return query
