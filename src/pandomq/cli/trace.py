"""`pandomq trace`: records events of the messages of a vhost in its stream `pandomq.trace`."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer

from pandomq.cli.api import Api, AsJson, Url
from pandomq.cli.failures import RequestRejected, WrongUse
from pandomq.cli.objects.listing import Vhost
from pandomq.cli.output import print_json, print_table, say
from pandomq.trace_form import TRACE_STREAM

trace_app = typer.Typer(name="trace", help="Trace messages step by step into a stream.", no_args_is_help=True)

InVhost = Annotated[str, typer.Option("--vhost", "-p", help="Name of the vhost.")]
Sample = Annotated[
    str | None,
    typer.Option(
        metavar="SHARE",
        help="Share of the messages to trace, as 1%, 0.01 or all.",
        show_default="the previous share, or all",
    ),
]


@trace_app.command("on")
def on(vhost: InVhost = "/", sample: Sample = None, url: Url = None) -> None:
    """Start tracing all or some messages of a vhost, into its stream pandomq.trace. It needs an administrator.

    Any reader of streams can read the traces, and `pandomq pipeline rollup` aggregates them.
    """
    trace_on(Api.at(url), vhost, None if sample is None else part_of(sample))


@trace_app.command("off")
def off(vhost: InVhost = "/", url: Url = None) -> None:
    """Stop tracing a vhost. Recorded traces stay in the stream."""
    trace_off(Api.at(url), vhost)


@trace_app.command("status")
def status(vhost: Vhost = None, json: AsJson = False, url: Url = None) -> None:
    """Show which vhosts are traced, and the size of their trace streams."""
    api = Api.at(url)
    vhosts = [api.get("vhosts", vhost)] if vhost is not None else api.get("vhosts")
    rows = [_status_of(api, row) for row in vhosts]
    if json:
        print_json(msgspec.json.encode(rows))
    else:
        shown = [[row["vhost"], row["tracing"], percent(row["sample"]), row["batches"], row["bytes"]] for row in rows]
        print_table(["vhost", "tracing", "sample", "batches", "bytes"], shown)


def trace_on(api: Api, vhost: str, sample: float | None = None) -> None:
    if not api.exists("vhosts", vhost):
        raise RequestRejected(f"vhost '{vhost}' does not exist; `pandomq vhosts list` lists the vhosts")
    api.put("vhosts", vhost, body={"tracing": True} if sample is None else {"tracing": True, "trace_sample": sample})
    traced = api.get("vhosts", vhost)["trace_sample"]
    say(f"{percent(traced)} of the messages in vhost '{vhost}' are traced to the stream {TRACE_STREAM}")


def trace_off(api: Api, vhost: str) -> None:
    if not api.exists("vhosts", vhost):
        raise RequestRejected(f"vhost '{vhost}' does not exist; `pandomq vhosts list` lists the vhosts")
    api.put("vhosts", vhost, body={"tracing": False})
    say(f"vhost '{vhost}' is no longer traced")


def part_of(text: str) -> float:
    """Raises WrongUse."""
    try:
        part = 1.0 if text == "all" else float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        part = 0.0
    if not 0 < part <= 1:
        raise WrongUse(f"--sample '{text}' is not a share of the messages: expected, for example, 1%, 0.01 or all")
    return part


def percent(sample: float) -> str:
    return f"{sample * 100:.6g} %"


def _status_of(api: Api, vhost: dict[str, Any]) -> dict[str, Any]:
    name = vhost["name"]
    stream = api.get("queues", name, TRACE_STREAM) if api.exists("queues", name, TRACE_STREAM) else {}
    return {
        "vhost": name,
        "tracing": vhost["tracing"],
        "sample": vhost["trace_sample"],
        "batches": stream.get("messages", 0),
        "bytes": stream.get("message_bytes", 0),
    }
