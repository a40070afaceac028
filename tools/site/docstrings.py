"""An extension of griffe: docstrings of this project as Markdown."""

from __future__ import annotations

import re

import griffe

_ROLE = re.compile(r":\w+:(?=`)")
_OTHERS = re.compile(r"^( +)The errors of (.+)\.$", re.MULTILINE)
_EXAMPLE = re.compile(r"^Example:\n((?: {4}.*\n|\n)+)", re.MULTILINE)


class AsMarkdown(griffe.Extension):
    """Show the lines below ``Example:`` as code, names without their roles (``:meth:``)."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Change the docstring of one object."""
        if obj.docstring is not None:
            text = _ROLE.sub("", f"{obj.docstring.value}\n")
            obj.docstring.value = _OTHERS.sub(r"\1Others: As \2.", _EXAMPLE.sub(_fenced, text))


def _fenced(found: re.Match[str]) -> str:
    return f"Example:\n    ```python\n{found[1].rstrip()}\n    ```\n\n"
