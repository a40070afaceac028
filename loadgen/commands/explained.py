"""Commands whose docstrings explain their options: each stands once, beside what it does."""

from __future__ import annotations

import functools
import inspect
import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loadgen.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

_HELP = re.compile(r"^    (\w+)(?: \(([^)]+)\))?: (.+(?:\n {8}.+)*)", re.MULTILINE)


def explained(function: Callable[..., object]) -> Callable[..., object]:
    """Return a command whose options have the help that the docstring has for its parameters.

    There ``name (METAVAR): help`` stands under ``Options:``. What a parameter's annotation says of
    its option itself holds. Whole numbers are counts, but for seeds: there is at least one.
    """
    text, _, about = inspect.cleandoc(function.__doc__ or "").partition("\nOptions:\n")
    helps = {found[1]: (found[2], " ".join(found[3].split())) for found in _HELP.finditer(about)}

    @functools.wraps(function)
    def command(**given: Any) -> object:  # noqa: ANN401
        for name, value in given.items():
            if type(value) is int and value < 1 and name != "seed":
                raise UsageError(f"--{name.replace('_', '-')} {value}: must be at least 1")
        return function(**given)

    parameters = []
    for each in inspect.signature(function, eval_str=True).parameters.values():
        if each.name in helps:
            metavar, said = helps[each.name]
            is_argument = each.default is inspect.Parameter.empty
            kind: Any = typer.Argument if is_argument else typer.Option
            shown = is_argument or each.default not in (None, "", False)
            # A switch that is off has no opposite to say.
            flags = [f"--{each.name.replace('_', '-')}"] if each.default is False else []
            option = kind(*flags, help=said, metavar=metavar, show_default=shown)
            each = each.replace(annotation=Annotated[each.annotation, option])
        parameters.append(each)
    signed: Any = command
    signed.__signature__ = inspect.Signature(parameters)
    command.__doc__ = text
    return command
