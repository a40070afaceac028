"""Import names of Floodgate's own modules, which differ between a checkout and wheels.

In a checkout the packages are at the top level: ``broker.service``. Wheels have them within a few
packages, as their names are common words: ``pulsar_floodgate.broker.service``. Code uses the short
name, and this module converts a name string for import or execution.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

_CLIENT, _SERVERS = "pulsar_floodgate_client", "pulsar_floodgate"
IN_WHEELS = {
    "limiter": f"{_CLIENT}.limiter",
    "proto": f"{_CLIENT}.proto",
    "client": _CLIENT,
    "server": f"{_SERVERS}.server",
    "broker": f"{_SERVERS}.broker",
    "proxy": f"{_SERVERS}.proxy",
    "loadgen": "pulsar_floodgate_loadgen",
}
"""The packages' names in wheels, as in packaging/distributions.toml."""
PACKAGES = tuple(IN_WHEELS)
IS_CHECKOUT = __name__ == "server.module_names"


def module_name(name: str) -> str:
    """Return the name under which to import a module, given its name in a checkout."""
    top, dot, rest = name.partition(".")
    return name if IS_CHECKOUT else f"{IN_WHEELS[top]}{dot}{rest}"


def class_module(name: str) -> str:
    """Return the import name of the module in a class path: Floodgate's own or a user's.

    Floodgate's modules precede a user's of the same name. The module itself is not executed; its
    parent packages are imported.
    """
    ours = name.removeprefix(f"{_SERVERS}.")
    if ours.partition(".")[0] in PACKAGES and _is_there(module_name(ours)):
        return module_name(ours)
    return name


def python_path() -> dict[str, str]:
    """Return the PYTHONPATH with which a child process can import this code."""
    root = str(Path(__file__).resolve().parents[__name__.count(".")])
    inherited = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join([root, inherited] if inherited else [root])}


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
