"""Import of the classes that a configuration names as ``module:Class``."""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, TypeVar

from server.module_names import class_module

if TYPE_CHECKING:
    from collections.abc import Sequence

BaseT = TypeVar("BaseT")

MAX_TEXT_CHARACTERS = 300
"""Most characters kept of an exception's text."""


class UnusableClassError(Exception):
    """The configured class cannot be imported, or does not meet the requirements."""


def is_class_path(text: str) -> bool:
    """Return True if a text has the form ``module:Class``; nothing is imported."""
    module, colon, name = text.partition(":")
    return bool(colon) and all(map(str.isidentifier, [*module.split("."), name]))


def loaded_class(path: str, base: type[BaseT], methods: Sequence[str] = ()) -> type[BaseT]:
    """Import and return the class ``module:Class``.

    Installed modules precede those in the working directory.

    Raises:
        UnusableClassError: The class does not exist, or does not meet the requirements.
    """
    module_name, _, class_name = path.partition(":")
    if not {"", os.getcwd()} & set(sys.path):
        sys.path.append(os.getcwd())
    try:
        module = importlib.import_module(class_module(module_name))
    except (Exception, SystemExit) as error:
        raise UnusableClassError(f"{module_name} cannot be imported: {told(error)}") from error
    found = getattr(module, class_name, None)
    if not isinstance(found, type):
        raise UnusableClassError(f"{module_name} has no class {class_name}")
    missing = [method for method in methods if not callable(getattr(found, method, None))]
    missing = missing or sorted(getattr(found, "__abstractmethods__", ()))
    if missing:
        raise UnusableClassError(f"{class_name} lacks {', '.join(missing)}")
    if not issubclass(found, base):
        raise UnusableClassError(f"{class_name} is no subclass of {base.__name__}")
    return found


def told(error: BaseException) -> str:
    """Return an exception's type and text, made safe and short enough to send in a response."""
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - even its text may be broken
        text = type(error).__name__
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= MAX_TEXT_CHARACTERS else f"{text[:MAX_TEXT_CHARACTERS]}..."
