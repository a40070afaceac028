"""Reads from each server what produced a run's figures: its version, and its keys' values.

A broker is asked by admin REST (``brokers/version`` and ``brokers/configuration/runtime``), which
a real Pulsar's answers as well. A proxy passes admin calls on to its broker, so what it says of
itself is read from its metrics: ``floodgate_server_info``, or the version alone in
``pulsar_version_info``. What a server does not tell stays unknown; it fails no run.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from loadgen.access import WebPages
from loadgen.places.sampling import (
    LABEL,
    LARGEST_PAGE_BYTES,
    REQUEST_TIMEOUT_SECONDS,
    UNREADABLE,
)
from proto.version import FLOODGATE_VERSION, VERSION
from server.server_info import INFO_KEYS, METRIC, label_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_INFO = re.compile(rf"^({METRIC}|pulsar_version_info)\{{(.*)\}} ", re.MULTILINE)
_BROKERS = "/admin/v2/brokers"


@dataclass(frozen=True)
class ServerFacts:
    """A server's own words on its version and its settings.

    Attributes:
        version: What it calls its version; None if it does not say.
        settings: Those of ``INFO_KEYS`` that it tells, with their values.
    """

    version: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


def read_server_facts(process: str, admin_url: str) -> ServerFacts:
    """Ask a server at its web port; nothing is raised, what it does not tell is unknown."""
    url = admin_url.rstrip("/")
    told = facts_of_page(_text(f"{url}/metrics/"))
    if process != "broker":
        return told
    version = _text(f"{url}{_BROKERS}/version").strip().strip('"')
    runtime = _json_object(_text(f"{url}{_BROKERS}/configuration/runtime"))
    settings = {key: str(runtime[key]) for key in INFO_KEYS if key in runtime}
    return ServerFacts(version or told.version, settings or told.settings)


def facts_of_page(page: str) -> ServerFacts:
    """Return what a page of metrics says of its server."""
    found = {name: dict(LABEL.findall(labels)) for name, labels in _INFO.findall(page)}
    own = found.get(METRIC)
    if own is None:
        return ServerFacts(found.get("pulsar_version_info", {}).get("version"))
    version = FLOODGATE_VERSION.removesuffix(VERSION) + own.get("version", "")
    labels = {key: label_of(key) for key in INFO_KEYS}
    return ServerFacts(version, {key: own[name] for key, name in labels.items() if name in own})


def _text(url: str) -> str:
    """Return what is at a URL; nothing if it is not to be had."""
    try:
        return WebPages().read(url, REQUEST_TIMEOUT_SECONDS, LARGEST_PAGE_BYTES)
    except UNREADABLE:
        return ""


def _json_object(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text or "{}")
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
