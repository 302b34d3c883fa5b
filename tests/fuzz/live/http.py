"""Hostile requests over HTTP: every endpoint with every method, its names and its body at and beyond every bound.

An administrator has the right to do harm. So the names in paths and bodies are the hostile client's own: no request
concerns the bystanders.
"""

from __future__ import annotations

import base64
import re
from random import Random
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from pandomq.admin import routes
from tests.fuzz.live.amqp import Login
from tests.fuzz.live.values import FIELDS, NAMES, OCTETS, TEXTS, encoded_json, some_json

REQUESTS_MAX: Final = 25
METHODS: Final = ("GET", "HEAD", "PUT", "POST", "DELETE")
FORBIDDEN: Final = ("api/cluster/promote", "api/users/bulk-delete")
"""With a body that happens to be valid they would concern all clients; `PLAIN_BODIES` has harmless ones."""
USERS: Final = ("hostile-a", "hostile-b")
BODY_FIELDS: Final = (
    *("durable", "auto_delete", "exclusive", "internal", "type", "arguments", "routing_key", "properties", "payload"),
    *("payload_encoding", "count", "ackmode", "encoding", "truncate", "requeue", "mandatory", "password", "tags"),
    *("password_hash", "hashing_algorithm", "configure", "write", "read", "exchange", "pattern", "definition"),
    *("priority", "apply-to", "value", "limits", "description", "tracing", "default_queue_type", "metadata", "address"),
    *("if-empty", "if-unused", "name", "vhost", "source", "destination", "destination_type", "node", "component"),
)
SECTIONS: Final = (
    "users",
    "vhosts",
    "permissions",
    "topic_permissions",
    "parameters",
    "global_parameters",
    "policies",
    "queues",
    "exchanges",
    "bindings",
)
_TEMPLATE: Final = re.compile(r"{(\w+)}")
ROUTES: Final = tuple(routes._ROUTES)
CHANGED: Final = tuple(template for template, actions in routes._ROUTES.items() if {"PUT", "POST"} & set(actions))
"""The endpoints with bodies."""
_NO_JSON: Final = re.compile(rb"NaN|-?Infinity|\\ud800|(?<=a)\\udfff")
"""Values that Python writes and JSON does not have."""


class HttpBatch(NamedTuple):
    data: bytes
    inputs: int


def batch(random: Random, administrator: Login, user: Login) -> HttpBatch:
    count = random.randint(REQUESTS_MAX // 2, REQUESTS_MAX)
    requests = [_request(random, administrator, user) for _ in range(count)]
    if random.random() < 0.2:
        last = requests[-1]
        requests[-1] = (
            last[: random.randrange(len(last))] if random.random() < 0.5 else last.replace(b" HTTP/1.1", b"", 1)
        )
    # A client that requests the end of the connection receives it after the answer, so it need not wait.
    return HttpBatch(
        b"".join(requests) + b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", count
    )


def _request(random: Random, administrator: Login, user: Login) -> bytes:
    template = random.choice(ROUTES if random.random() < 0.3 else CHANGED)
    declared = list(routes._ROUTES[template])
    if "GET" in declared and len(declared) > 1 and random.random() < 0.8:
        declared.remove("GET")
    if "DELETE" in declared and len(declared) > 1 and random.random() < 0.6:
        declared.remove("DELETE")
    method = random.choice(declared) if random.random() < 0.95 else random.choice(METHODS)
    if (method, template) == ("DELETE", "api/vhosts/{vhost}") and random.random() < 0.95:
        # Without its vhost most requests of the hostile client fail until that is made again.
        method = "PUT"
    path = _TEMPLATE.sub(lambda found: _part(random, found[1]), template) + _query(random)
    body = b"" if method in ("GET", "HEAD") and random.random() < 0.95 else _body(random, template)
    chance = random.random()
    login = administrator if chance < 0.75 else user if chance < 0.9 else None
    headers = [f"Host: {'localhost' if random.random() < 0.98 else 'elsewhere.example'}"]
    if login is not None:
        headers.append(f"Authorization: Basic {base64.b64encode(f'{login.user}:{login.password}'.encode()).decode()}")
    elif random.random() < 0.3:
        wrong = (
            "Basic",
            "Basic %%%",
            f"Bearer {'x' * 3_000}",
            "Basic AAAA",
            "PandoMQ-Key x",
            'PandoMQ-Key key="", proof=""',
        )
        headers.append(f"Authorization: {random.choice(wrong)}")
    if body:
        headers.append(f"Content-Type: {'application/json' if random.random() < 0.97 else 'text/plain'}")
        headers.append(f"Content-Length: {len(body)}")
    if random.random() < 0.02:
        headers.append(
            random.choice(["X-Reason: \xff", "X-Forwarded-For: ::1, 1.2.3.4", "Accept: " + "a" * 5_000, "Origin: null"])
        )
    return (
        f"{method} /{path} HTTP/1.1\r\n".encode("latin-1") + "\r\n".join(headers).encode("latin-1") + b"\r\n\r\n" + body
    )


def _part(random: Random, name: str) -> str:
    """Draws one part of a path, which concerns no other client."""
    chance = random.random()
    if name == "vhost":
        return "hostile" if chance < 0.97 else _odd(random)
    if name == "user":
        return random.choice(USERS) if chance < 0.93 else _odd(random)
    if name in ("connection", "channel", "node"):
        return _odd(random)
    if name == "name":
        return random.choice(["max-connections", "max-channels", "max-queues"]) if chance < 0.9 else _odd(random)
    if name == "port":
        return (
            random.choice(["0", "5672", "65536", "-1", "9" * 400, "٣"]).encode().hex()
            if chance < 0.1
            else quote(random.choice(["5672", "٣", "-1", "99999"]))
        )
    return quote(random.choice(NAMES), safe="") if chance < 0.93 else _odd(random)


def _odd(random: Random) -> str:
    """No name of anything that exists: neither the default vhost nor a user that bystanders are."""
    if random.random() < 0.3:
        return quote(random.choice(OCTETS), safe="")
    return quote(random.choice([text for text in TEXTS if text]) + "~", safe="") + random.choice(
        ["", "%00", "%", "%zz"]
    )


def _query(random: Random) -> str:
    if random.random() < 0.8:
        return ""
    names = (
        "page",
        "page_size",
        "name",
        "use_regex",
        "sort",
        "sort_reverse",
        "columns",
        "if-empty",
        "if-unused",
        "disable_stats",
    )
    pairs = [
        f"{random.choice(names)}={quote(str(random.choice([*TEXTS, 0, -1, 2**64, 'nan', 'name', 'true', '(a+)+$'])))}"
        for _ in range(random.randint(1, 3))
    ]
    return "?" + "&".join(pairs)


def _body(random: Random, template: str) -> bytes:
    if template in FORBIDDEN:
        return encoded_json(
            random, {"name": "hostile~", "users": [some_json(random, 0)], "force": some_json(random, 0)}
        )
    if template.startswith("api/definitions"):
        octets = encoded_json(random, _definitions(random))
        return octets if random.random() < 0.05 else _NO_JSON.sub(b"1e308", octets)
    if random.random() < 0.05:
        return encoded_json(random, some_json(random))
    names = random.sample(BODY_FIELDS, random.randint(1, 6))
    octets = encoded_json(random, _good(template) | {name: _value(random, name) for name in names})
    return octets if random.random() < 0.05 else _NO_JSON.sub(b"1e308", octets)


def _good(template: str) -> dict[str, Any]:
    """Returns a valid body of an endpoint, to be changed in a part."""
    if template.endswith("/publish"):
        return {"properties": {}, "routing_key": "hostile.q0", "payload": "m", "payload_encoding": "string"}
    if template.endswith("/get"):
        return {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}
    if "permissions" in template:
        return {"configure": "", "write": "", "read": "", "exchange": "hostile.x0"}
    if "policies" in template:
        return {"pattern": "^hostile", "definition": {"max-length": 10}, "apply-to": "queues"}
    if "limits" in template:
        return {"value": 10}
    if template.startswith("api/users"):
        return {"password": "p", "tags": ""}
    return {"type": "topic"} if "exchanges" in template else {}


def _value(random: Random, name: str) -> Any:
    if name in ("arguments", "definition", "properties", "limits", "metadata") and random.random() < 0.8:
        return {random.choice(FIELDS): some_json(random) for _ in range(random.randint(1, 3))}
    if name == "component" and random.random() < 0.8:
        return random.choice(["operator_policy", "vhost-limits", "federation", "shovel"])
    if name in ("name", "vhost", "source", "destination") and random.random() < 0.7:
        return random.choice(NAMES) if name != "vhost" else "hostile"
    return some_json(random)


def _definitions(random: Random) -> Any:
    """Draws an import of an administrator, which concerns names of the hostile client alone."""
    found: dict[str, Any] = {}
    for section in random.sample(SECTIONS, random.randint(1, 4)):
        if random.random() < 0.1:
            found[section] = some_json(random)
            continue
        found[section] = [_definition(random, section) for _ in range(random.randint(1, 3))]
    return found


def _definition(random: Random, section: str) -> Any:
    if random.random() < 0.1:
        return some_json(random)
    names = random.sample(BODY_FIELDS, random.randint(0, 4))
    made = {name: _value(random, name) for name in names}
    made |= {"name": random.choice(USERS if section == "users" else NAMES), "vhost": "hostile"}
    if section == "vhosts":
        made["name"] = "hostile"
    if section in ("permissions", "topic_permissions"):
        made |= {"user": random.choice(USERS), "configure": "", "write": "", "read": ""}
    if section == "users" and random.random() < 0.7:
        made |= {
            "password_hash": random.choice(["", "AAAA", "x" * 5_000, 5]),
            "tags": random.choice(["", [], {}, "management", None]),
        }
    if section in ("queues", "exchanges") and random.random() < 0.7:
        made |= {
            "durable": True,
            "auto_delete": False,
            "arguments": {random.choice(FIELDS): some_json(random)},
            "type": "topic",
        }
    if section == "bindings" and random.random() < 0.7:
        made |= {
            "source": "hostile.x0",
            "destination": "hostile.q0",
            "destination_type": "queue",
            "routing_key": "k",
            "arguments": {},
        }
    return made
