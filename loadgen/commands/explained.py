"""Help texts of command-line options, taken from the docstring of each command.

Thus each option is explained only once.
"""

from __future__ import annotations

import functools
import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loadgen.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

_HELP = re.compile(r"^    (\w+)(?: \(([^)]+)\))?: (.+(?:\n {8}.+)*)", re.MULTILINE)


def explained(function: Callable[..., object]) -> Callable[..., object]:
    """Return a command whose options have the help texts in the function's docstring.

    Below ``Options:`` in the docstring, a row ``name (METAVAR): help`` explains each parameter that
    has no option in its annotation. The command refuses integers below 1, except for a seed.
    """
    text, _, about = inspect.cleandoc(function.__doc__ or "").partition("\nOptions:\n")
    helps = {found[1]: (found[2], " ".join(found[3].split())) for found in _HELP.finditer(about)}

    @functools.wraps(function)
    def command(**given: Any) -> object:  # noqa: ANN401
        for name, value in given.items():
            if type(value) is int and value < 1 and name != "seed":
                raise UsageError(f"--{name.replace('_', '-')} {value}: must be at least 1")
        return function(**{name: _placed(value) for name, value in given.items()})

    parameters = []
    for each in inspect.signature(function, eval_str=True).parameters.values():
        if each.name in helps:
            metavar, said = helps[each.name]
            is_argument = each.default is inspect.Parameter.empty
            kind: Any = typer.Argument if is_argument else typer.Option
            shown = is_argument or each.default not in (None, "", False)
            # A switch needs no option to turn it off.
            flags = [f"--{each.name.replace('_', '-')}"] if each.default is False else []
            option = kind(*flags, help=said, metavar=metavar, show_default=shown)
            each = each.replace(annotation=Annotated[each.annotation, option])
        parameters.append(each)
    signed: Any = command
    signed.__signature__ = inspect.Signature(parameters)
    command.__doc__ = text
    return command


def _placed(value: Any) -> Any:  # noqa: ANN401
    """Return an option's value with its paths made absolute, also paths in object stores.

    Values that are not paths are returned unchanged.
    """
    if isinstance(value, list):
        return [_placed(each) for each in value]
    if not isinstance(value, Path):
        return value
    from loadgen.stored import placed  # Imported late: Arrow would slow --help down.

    return placed(value)
