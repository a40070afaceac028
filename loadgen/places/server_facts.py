"""Reads from each server what produced a run's figures: its version, and its keys' values.

A broker is asked by admin REST (``brokers/version`` and ``brokers/configuration/runtime``), which
a real Pulsar's answers as well. A proxy passes admin calls on to its broker, so what it says of
itself is read from its metrics: ``floodgate_server_info``, or the version alone in
``pulsar_version_info``. What a server does not tell stays unknown; it fails no run.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

from loadgen.access import WebPages
from loadgen.places.sampling import (
    LABEL,
    LARGEST_PAGE_BYTES,
    REQUEST_TIMEOUT_SECONDS,
    UNREADABLE,
)
from proto.version import FLOODGATE_VERSION, VERSION
from server.server_info import INFO_KEYS, METRIC, label_of

_INFO = re.compile(rf"^({METRIC}|pulsar_version_info)\{{(.*)\}} ", re.MULTILINE)
_BROKERS = "/admin/v2/brokers"


def read_server_facts(process: str, admin_url: str) -> dict[str, Any]:
    """Ask a server for its version, and for its settings of ``INFO_KEYS``.

    Nothing is raised: what it does not tell is unknown.
    """
    url = admin_url.rstrip("/")
    told = facts_of_page(_text(f"{url}/metrics/"))
    if process == "broker":
        told["version"] = _text(f"{url}{_BROKERS}/version").strip().strip('"') or told["version"]
        with suppress(ValueError, TypeError):  # no JSON, or no object
            runtime = json.loads(_text(f"{url}{_BROKERS}/configuration/runtime"))
            settings = {key: str(runtime[key]) for key in INFO_KEYS if key in runtime}
            told["settings"] = settings or told["settings"]
    return told


def facts_of_page(page: str) -> dict[str, Any]:
    """Return what a page of metrics says of its server's version and settings."""
    found = {name: dict(LABEL.findall(labels)) for name, labels in _INFO.findall(page)}
    version = found.get("pulsar_version_info", {}).get("version")
    own = found.get(METRIC, {})
    if own:
        version = FLOODGATE_VERSION.removesuffix(VERSION) + own.get("version", "")
    labels = {key: label_of(key) for key in INFO_KEYS}
    settings = {key: own[name] for key, name in labels.items() if name in own}
    return {"version": version, "settings": settings}


def _text(url: str) -> str:
    """Return what is at a URL; nothing if it is not to be had."""
    try:
        return WebPages().read(url, REQUEST_TIMEOUT_SECONDS, LARGEST_PAGE_BYTES)
    except UNREADABLE:
        return ""
