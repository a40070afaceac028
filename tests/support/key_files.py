"""A real broker's and proxy's recorded keys, and configuration files made from them."""

import json
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parent.parent / "golden"
DATA = Path(__file__).parent.parent / "data"


def recorded_keys(role: str) -> list[dict[str, Any]]:
    """Return the recorded keys of ``broker`` or ``proxy``."""
    keys: list[dict[str, Any]] = json.loads((GOLDEN / f"{role}-keys.json").read_text())
    return keys


def file_of_defaults(role: str, no_default: str) -> str:
    """Return a configuration file with every key's default.

    Args:
        role: ``broker`` or ``proxy``.
        no_default: Text for a missing default: ``null``, or empty.
    """
    return "".join(
        f"{entry['key']}={no_default if entry['default'] is None else entry['default']}\n"
        for entry in recorded_keys(role)
    )
