"""A griffe extension that converts this project's docstrings to Markdown for the site."""

from __future__ import annotations

import re

import griffe

_ROLE = re.compile(r":\w+:(?=`)")
_OTHERS = re.compile(r"^( +)The errors of (.+)\.$", re.MULTILINE)
_EXAMPLE = re.compile(r"^Example:\n((?: {4}.*\n|\n)+)", re.MULTILINE)


class AsMarkdown(griffe.Extension):
    """Converts docstrings: lines below ``Example:`` become code, roles (``:meth:``) are removed."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Convert the docstring of one documented object."""
        if obj.docstring is not None:
            text = _ROLE.sub("", f"{obj.docstring.value}\n")
            obj.docstring.value = _OTHERS.sub(r"\1Others: As \2.", _EXAMPLE.sub(_fenced, text))


def _fenced(found: re.Match[str]) -> str:
    return f"Example:\n    ```python\n{found[1].rstrip()}\n    ```\n\n"
