"""The recorded keys of a real broker and proxy, and configuration files made of them."""

import json
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parent.parent / "golden"
DATA = Path(__file__).parent.parent / "data"


def recorded_keys(role: str) -> list[dict[str, Any]]:
    """Return what was recorded of every key of ``broker`` or ``proxy``."""
    keys: list[dict[str, Any]] = json.loads((GOLDEN / f"{role}-keys.json").read_text())
    return keys


def file_of_defaults(role: str, no_default: str) -> str:
    """Return a configuration file that gives every key its default.

    Args:
        role: ``broker`` or ``proxy``.
        no_default: What stands where there is none: ``null``, or nothing.
    """
    return "".join(
        f"{entry['key']}={no_default if entry['default'] is None else entry['default']}\n"
        for entry in recorded_keys(role)
    )
