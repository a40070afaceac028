"""The names by which Floodgate's own modules are imported here.

In a checkout the packages stand at the top: ``broker.service``. In the wheel they stand in one
package, as their names are words that other people use too: ``floodgate.broker.service``. Code says
the short name, and asks this module where a name as a string is to be imported or run.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

WHEEL = "floodgate"
"""The package that holds all others in the wheel."""
PACKAGES = ("limiter", "proto", "client", "server", "broker", "proxy", "loadgen")
ABOVE = __name__.removesuffix("server.module_names")
"""In front of our packages' names: nothing in a checkout, ``floodgate.`` in the wheel."""


def module_name(name: str) -> str:
    """Return the name here of one of our modules, given as in a checkout."""
    return f"{ABOVE}{name}"


def class_module(name: str) -> str:
    """Return the name here of a class path's module, ours in either spelling or anybody's.

    A module of ours goes before one of the same name of the user's. Nothing of the module itself is
    run; the packages around it are imported.
    """
    ours = name.removeprefix(f"{WHEEL}.")
    if ours.partition(".")[0] in PACKAGES and _is_there(module_name(ours)):
        return module_name(ours)
    return name


def python_path() -> dict[str, str]:
    """Return the variable by which a process finds this very code from any working directory."""
    root = str(Path(__file__).resolve().parents[__name__.count(".")])
    inherited = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join([root, inherited] if inherited else [root])}


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
