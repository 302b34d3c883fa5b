"""Staged batches, asked for on the data port: stage, commit, drop, last_batch. All of it is the root's business."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pandomq import data_form
from pandomq.broker.staging.names import Attempt
from pandomq.broker.staging.staging import Chosen
from pandomq.limits import STAGED_ATTEMPTS_MAX, STAGED_PART_BYTES_MAX
from pandomq.node.data.fields import number, rows, text
from pandomq.node.data.refusals import Refused, bad_request, not_found, not_now

if TYPE_CHECKING:
    from pandomq.broker.staging.staging import Staging
    from pandomq.data_form import Fields
    from pandomq.node.data.client import Answer, DataClient

_ATTEMPT: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ROW: Final = ("partition", "attempt", "parts")


def stage(client: DataClient, fields: Fields, payload: bytes, answer: Answer) -> None:
    staging = _staging(client)
    held_back = client.services.held_back()
    if held_back is not None:
        raise not_now(held_back)
    if len(payload) > STAGED_PART_BYTES_MAX:
        raise Refused(data_form.TOO_LARGE, f"a part has at most {STAGED_PART_BYTES_MAX} bytes, not {len(payload)}")
    vhost = client.vhost
    if "queue" in fields and text(fields, "queue") not in vhost.queues:
        raise not_found(f"no queue '{fields['queue']}' in vhost '{vhost.name}'")
    attempt = _attempt_of(fields, number(fields, "partition"), fields.get("attempt"))
    staging.stage(
        vhost,
        client.access,
        attempt,
        number(fields, "part"),
        payload,
        lambda decided: answer.ok({"decided": decided}),
        client.services.now_ms,
    )


def commit(client: DataClient, fields: Fields, payload: bytes, answer: Answer) -> None:
    staging = _staging(client)
    chosen = []
    for row in rows(fields, "attempts", STAGED_ATTEMPTS_MAX):
        named = _named(row, len(_ROW))
        attempt = _attempt_of(fields, number(named, "partition"), named["attempt"])
        chosen.append(Chosen(attempt.partition, attempt.name, number(named, "parts")))
    staging.commit(
        client.vhost,
        client.user,
        _query_of(fields),
        number(fields, "batch"),
        chosen,
        answer.ok,
        client.services.now_ms,
    )


def drop(client: DataClient, fields: Fields, payload: bytes, answer: Answer) -> None:
    staging = _staging(client)
    named = [_named(row, len(_ROW) - 1) for row in rows(fields, "attempts", STAGED_ATTEMPTS_MAX)]
    attempts = [_attempt_of(fields, number(row, "partition"), row["attempt"]) for row in named]
    staging.drop(client.vhost, client.user, attempts, answer.ok, client.services.now_ms)


def last_batch(client: DataClient, fields: Fields, payload: bytes, answer: Answer) -> None:
    staging = _staging(client)
    staging.last_batch(
        client.vhost, _query_of(fields), lambda batch: answer.ok({"batch": batch}), client.services.now_ms
    )


def _staging(client: DataClient) -> Staging:
    client.services.demand_root(tls=client.tls)
    return client.services.broker.staging


def _named(row: list[Any], size: int) -> Fields:
    if len(row) != size:
        raise bad_request(f"of an attempt {', '.join(_ROW[:size])} are wanted")
    return dict(zip(_ROW[:size], row, strict=True))


def _attempt_of(fields: Fields, partition: int, name: object) -> Attempt:
    if not isinstance(name, str) or _ATTEMPT.fullmatch(name) is None:
        raise bad_request("an attempt has a name of 1 to 64 letters, digits, - and _")
    return Attempt(number(fields, "batch"), partition, name, _query_of(fields))


def _query_of(fields: Fields) -> str:
    query = text(fields, "query")
    if not query:
        raise bad_request("a query has a name")
    return query
