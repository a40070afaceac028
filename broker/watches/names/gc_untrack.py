"""Objects that the garbage collector need not look at.

CPython's collector visits every tracked object, and all that it refers to, until it has seen that
none of that can be part of a cycle: for the names of a million topics that takes a tenth of a
second, in which nobody is served. A tuple of names has nothing to be found. It still goes when its
last reference does.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def _nothing(_: object) -> None:
    """Elsewhere than in CPython collectors know no such call."""


def _found() -> Callable[[object], object]:
    try:
        untrack = ctypes.pythonapi.PyObject_GC_UnTrack
    except AttributeError:
        return _nothing
    untrack.argtypes = [ctypes.py_object]
    untrack.restype = None
    return untrack


untrack: Callable[[object], object] = _found()
"""Tell the collector not to visit an object any more. Only for what cannot be part of a cycle."""
