"""An extension of griffe: the example of a docstring is shown as code."""

from __future__ import annotations

import re

import griffe

_EXAMPLE = re.compile(r"^Example:\n((?: {4}.*\n|\n)+)", re.MULTILINE)


class CodeInExamples(griffe.Extension):
    """Put fences around the lines below ``Example:``."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Change the docstring of one object."""
        if obj.docstring is not None:
            text = f"{obj.docstring.value}\n"
            obj.docstring.value = _EXAMPLE.sub(_fenced, text)


def _fenced(found: re.Match[str]) -> str:
    return f"Example:\n    ```python\n{found[1].rstrip()}\n    ```\n\n"
