"""Credentials over HTTP and in CONNECT, by method and kind of key, as recorded of a real broker."""

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from broker.configuration.config import known_keys
from limiter.metrics.prometheus import family
from server.authentication.providers import AuthenticationError
from server.authentication.service import AuthenticationService, open_service
from server.authentication.session import FAILED
from server.configuration.authentication import authentication_settings
from server.instruments import AUTHENTICATION
from tests.support.authentication.requests import VARIANTS, Keys, cases
from tests.support.clocks.manual_clock import ManualClock

DATA = Path(__file__).parents[3] / "data"
NOW = 1_800_000_000
_SAMPLE = re.compile(r"(\w+)\{(.*)\} (\S+)")
_LABEL = re.compile(r'(\w+)="([^"]*)"')


@cache
def keys() -> Keys:
    return Keys()


def service_of(variant: str, folder: Path) -> AuthenticationService:
    checked = known_keys().check(keys().properties(folder, variant))
    service = open_service(authentication_settings(checked, proxy=False), ManualClock(NOW))
    assert service is not None
    return service


def connected(service: AuthenticationService, method: str, data: bytes) -> str:
    try:
        service.authenticate(method or "none", data, None)
    except AuthenticationError:
        return f"AuthenticationError: {FAILED}"
    return "CONNECTED"


def status(service: AuthenticationService, headers: Mapping[str, str]) -> int:
    try:
        service.authenticate_request(headers, None)
    except AuthenticationError:
        return 401
    return 200


def played(service: AuthenticationService, variant: str) -> list[dict[str, object]]:
    return [
        {
            "variant": variant,
            "case": name,
            "connect": connected(service, shown.method, shown.data),
            "request": status(service, shown.headers),
            "named": status(service, shown.named),
        }
        for name, shown in cases(keys(), variant, NOW).items()
    ]


@pytest.mark.parametrize("variant", VARIANTS)
def test_credentials_have_the_recorded_outcomes(variant: str, tmp_path: Path) -> None:
    recorded = map(json.loads, (DATA / "requests.jsonl").read_text().splitlines())
    assert played(service_of(variant, tmp_path), variant) == [
        line for line in recorded if line["variant"] == variant
    ]


Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def recorded_samples() -> Samples:
    found: Samples = {}
    for line in (DATA / "authentication-metrics.txt").read_text().splitlines():
        sample = _SAMPLE.fullmatch(line)
        if sample is not None and not sample[1].endswith("_created"):
            found[sample[1], frozenset(_LABEL.findall(sample[2]))] = float(sample[3])
    return found


def test_outcomes_are_counted_under_the_recorded_names(tmp_path: Path) -> None:
    service = service_of("plain", tmp_path)
    played(service, "plain")
    shown: Samples = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for row in AUTHENTICATION
        for sample in family(row, service.counters, {"cluster": "standalone"}).samples
    }
    expected = recorded_samples()
    assert set(shown) == set(expected)
    different = {
        (name, dict(labels).get("reason") or dict(labels).get("auth_method")): (
            shown[name, labels] - value
        )
        for (name, labels), value in expected.items()
        if shown[name, labels] != value
    }
    assert different == {
        # The four good tokens of CONNECT, not counted by upstream.
        ("pulsar_authentication_success_total", "token"): 4,
        # The recorder's readiness request.
        ("pulsar_authentication_failures_total", "INVALID_HEADER"): -1,
    }


def test_expiring_tokens_are_counted_by_their_remaining_minutes(tmp_path: Path) -> None:
    service = service_of("plain", tmp_path)
    for minutes in (5, 6, 10**7):
        service.authenticate("token", keys().good("plain", sub="a", exp=NOW + 60 * minutes), None)
    counters = service.counters
    assert counters.expiring[:2] + counters.expiring[-1:] == [1, 1, 1]
    assert counters.expiring_minutes == 10**7 + 11
