"""Failures of upstream's server that profile pulsar repeats, each recorded on a real broker.

Replayed by ``tests/integration/admin/test_recorded_answers.py``.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_LINES = (Path(__file__).parents[2] / "data" / "rest_failures.jsonl").read_text().splitlines()
_RECORDED = {
    (line["method"], f"/admin/v2/{line['path']}")
    for line in map(json.loads, _LINES)
    if line["status"] == 500
}
_RECORDED |= {
    # With null in them a real broker never answers.
    ("PUT", "/admin/v2/persistent/public/default/orders/properties"),
    # As for the whole namespace, in a bundle with a topic.
    ("POST", "/admin/v2/namespaces/public/default/0x00000000_0x40000000/clearBacklog/none"),
}
_OWN = "Internal Server Error"


def is_recorded(failed: Mapping[str, Any]) -> bool:
    """Return whether an answer of 500 is a recorded failure of a real broker."""
    method, template = failed["label"].split(" ", 1)
    shape = re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(template)))
    known = any(one == method and shape.fullmatch(path) for one, path in _RECORDED)
    return failed["status"] == 500 and known and _OWN not in failed["text"]
