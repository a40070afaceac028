"""Failures of upstream's server that profile pulsar repeats: each was asked of a real broker."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_REASONS = re.compile("|".join(("stores no messages", "adminRoles has an empty one")))


def is_recorded(failed: Mapping[str, Any]) -> bool:
    """Tell whether an answer of 500 is one that a real broker gives."""
    return failed["status"] == 500 and bool(_REASONS.search(failed["text"]))
