"""Import names of Floodgate's own modules, in a checkout or in the wheel.

In a checkout the packages are at the top level: ``broker.service``. In the wheel they are within
one package, as their names are common words: ``floodgate.broker.service``. Code uses the short
name, and this module converts a name string for import or execution.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

WHEEL = "floodgate"
"""The wheel's top-level package."""
PACKAGES = ("limiter", "proto", "client", "server", "broker", "proxy", "loadgen")
ABOVE = __name__.removesuffix("server.module_names")
"""Prefix of the packages' names: empty in a checkout, ``floodgate.`` in the wheel."""


def module_name(name: str) -> str:
    """Return the effective name of a module, given its name in a checkout."""
    return f"{ABOVE}{name}"


def class_module(name: str) -> str:
    """Return the effective name of a class path's module, Floodgate's or a user's.

    Floodgate's modules precede a user's of the same name. The module itself is not executed; its
    parent packages are imported.
    """
    ours = name.removeprefix(f"{WHEEL}.")
    if ours.partition(".")[0] in PACKAGES and _is_there(module_name(ours)):
        return module_name(ours)
    return name


def python_path() -> dict[str, str]:
    """Return the environment variable that makes this code importable from any directory."""
    root = str(Path(__file__).resolve().parents[__name__.count(".")])
    inherited = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join([root, inherited] if inherited else [root])}


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
