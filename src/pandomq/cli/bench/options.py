"""The options of `pandomq bench`. Those of a load are made from the fields of `Load`, with their descriptions, bounds
and defaults; a new one is stated there only."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, Final, get_args, get_type_hints

import msgspec
import typer
from msgspec import Meta

from pandomq.bench.load import ArgumentMap, Load

LOCAL: Final = "amqp://guest:guest@127.0.0.1:5672/"
QUEUE_ARGUMENTS: Final = "queue_arguments"
"""The one field with two options."""

_FIELDS: Final = get_type_hints(Load, include_extras=True)
_DEFAULTS: Final[dict[str, object]] = {"url": LOCAL} | {
    field.name: field.default for field in msgspec.structs.fields(Load) if field.default is not msgspec.NODEFAULT
}


def _described(field: str) -> tuple[Any, Meta]:
    kind, meta = get_args(_FIELDS[field])
    return kind, meta


def _names(field: str) -> tuple[str, ...]:
    names: tuple[str, ...] = (_described(field)[1].extra or {}).get("option", ())
    return names


def _is_negated(field: str) -> bool:
    return (_described(field)[1].extra or {}).get("negated", False) is True


def option(field: str, more: str = "") -> Any:
    """The option of a field of `Load`; `more` is added to its help."""
    meta = _described(field)[1]
    least = (meta.extra or {}).get("least", meta.ge)
    text = f"{meta.description}{more}"
    return typer.Option(*_names(field), min=least, max=meta.le, help=text)


Url = Annotated[str, option("url")]
Size = Annotated[int, option("size_bytes")]
Sizes = Annotated[list[int], option("size_bytes", " Repeat the option for several runs.")]
Duration = Annotated[float, option("duration_s")]
WarmUp = Annotated[float, option("warm_up_s")]
Json = Annotated[Path | None, typer.Option("--json", help="Also write the result as JSON to this file.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Do not display progress.")]
Pid = Annotated[int | None, typer.Option(help="Process id of the broker, to measure its memory and processor time.")]
QueueType = Annotated[str, typer.Option(help="Value of the x-queue-type argument: classic, quorum or stream.")]
Argument = Annotated[
    list[str],
    typer.Option(
        "--argument", "-a", help="Declare queues with this argument, as NAME=VALUE. The option is repeatable."
    ),
]
Rounds = Annotated[int, typer.Option(min=1, help="Number of rounds. The median is reported.")]
Counts = Annotated[
    str,
    typer.Option(help="Numbers to measure with, separated by commas. Later ones are compared with the first."),
]


def takes_load(*names: str, **defaults: object) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a command of a function whose first parameter is a load.

    `names` has the options in their order: fields of `Load`, and parameters of the function, of which those that are
    not named come last. `defaults` are those that differ from `Load`'s."""

    def made(command: Callable[..., None]) -> Callable[..., None]:
        own = dict(inspect.signature(command, eval_str=True).parameters)
        del own["load"]
        parameters: list[Parameter] = []
        for name in names:
            parameters += [own.pop(name)] if name in own else _parameters(name, defaults)
        parameters += own.values()
        fields = [name for name in names if name in _FIELDS]

        @functools.wraps(command)
        def run(**values: Any) -> None:
            try:
                load = _load(fields, values)
            except ValueError as error:
                raise refused(error) from None
            command(load, **values)

        signature = inspect.Signature([one.replace(kind=Parameter.KEYWORD_ONLY) for one in parameters])
        run.__signature__ = signature  # type: ignore[attr-defined]
        return run

    return made


def _parameters(field: str, defaults: dict[str, object]) -> list[Parameter]:
    if field == QUEUE_ARGUMENTS:
        return [_parameter("queue_type", QueueType, ""), _parameter("argument", Argument, [])]
    default = defaults.get(field, _DEFAULTS[field])
    kind = _described(field)[0]
    return [_parameter(field, Annotated[kind, option(field)], not default if _is_negated(field) else default)]


def _parameter(name: str, annotation: object, default: object) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _load(fields: list[str], values: dict[str, Any]) -> Load:
    """Takes the options of these fields out of the values. Raises ValueError."""
    settings: dict[str, Any] = {}
    for field in fields:
        if field == QUEUE_ARGUMENTS:
            queue_type = values.pop("queue_type")
            settings[field] = _queue_arguments(queue_type, values.pop("argument"))
            settings["durable"] = queue_type == "quorum"
        else:
            value = values.pop(field)
            settings[field] = not value if _is_negated(field) else value
    settings["durable"] = settings.get("durable", False) or settings.get("persistent", False)
    return Load(**settings)


def refused(error: Exception) -> typer.Exit:
    """Prints an error of the broker or the user as one line."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    typer.echo(f"pandomq bench: {reason}", err=True)
    return typer.Exit(1)


def _queue_arguments(queue_type: str, arguments: list[str]) -> ArgumentMap:
    found: ArgumentMap = {"x-queue-type": queue_type} if queue_type else {}
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if not equals:
            raise ValueError(f"{argument!r} is not a queue argument: expected NAME=VALUE")
        found[name] = _argument_value(value)
    return found


def _argument_value(text: str) -> bool | int | str:
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.lstrip("-").isdigit() else text
