"""Options that several commands share: the fields of a struct, which state their descriptions and defaults once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Any, get_type_hints

import msgspec


def takes(options: type[msgspec.Struct], *, last: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a command of a function whose first parameter has these options. They come before its own options, or
    `last`."""
    kinds = get_type_hints(options, include_extras=True)
    shared = [
        Parameter(field.name, Parameter.KEYWORD_ONLY, annotation=kinds[field.name], default=field.default)
        for field in msgspec.structs.fields(options)
    ]

    def made(command: Callable[..., None]) -> Callable[..., None]:
        _, *parameters = inspect.signature(command, eval_str=True).parameters.values()
        own = [one.replace(kind=Parameter.KEYWORD_ONLY) for one in parameters]

        @functools.wraps(command)
        def run(**values: Any) -> None:
            command(options(**{one.name: values.pop(one.name) for one in shared}), **values)

        signature = inspect.Signature([*own, *shared] if last else [*shared, *own])
        run.__signature__ = signature  # type: ignore[attr-defined]
        return run

    return made
