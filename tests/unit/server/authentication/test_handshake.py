"""CONNECT with credentials of all kinds, as recorded of a real broker."""

import json
from functools import cache
from pathlib import Path

import pytest

from broker.configuration.config import known_keys
from server.authentication.handshake import ConnectRules, ProxyRules, session_of
from server.authentication.providers import AuthenticationError
from server.authentication.service import open_service
from server.authentication.session import FAILED
from server.configuration.authentication import authentication_settings
from server.connection.request_errors import RequestError
from tests.support.authentication.connects import VARIANTS, cases, connect
from tests.support.authentication.credentials import properties
from tests.support.clocks.manual_clock import ManualClock

RECORDED = Path(__file__).parents[3] / "data" / "connects.jsonl"
NOW = 1_800_000_000


@cache
def recorded() -> list[dict[str, str]]:
    return [json.loads(line) for line in RECORDED.read_text().splitlines()]


def rules_of(variant: str, folder: Path) -> ConnectRules:
    checked = known_keys().check(properties(folder, **VARIANTS[variant]))
    settings = authentication_settings(checked, proxy=False)
    service = open_service(settings, ManualClock(NOW))
    assert settings is not None
    assert service is not None
    proxies = ProxyRules(
        frozenset(checked.names("proxyRoles")),
        enforced=checked.flag("authorizationEnabled"),
        checks_original=settings.checks_original,
    )
    return ConnectRules(service, proxies)


@pytest.mark.parametrize("variant", VARIANTS)
def test_connects_have_the_recorded_outcomes(variant: str, tmp_path: Path) -> None:
    rules, found = rules_of(variant, tmp_path), {}
    for name, fields in cases(variant, NOW).items():
        found[name] = outcome(rules, fields)
    assert found == {
        line["case"]: line["outcome"] for line in recorded() if line["variant"] == variant
    }


def outcome(rules: ConnectRules, fields) -> str:
    try:
        session_of(connect(fields).connect, None, rules.service, rules.proxies)
    except AuthenticationError:
        return f"AuthenticationError: {FAILED}"
    except RequestError as error:
        return str(error)
    return "CONNECTED"


def test_behind_a_proxy_the_original_principal_is_checked_beside_the_proxy(tmp_path: Path) -> None:
    told, proved = rules_of("audience", tmp_path), rules_of("original", tmp_path)
    behind = cases("audience", NOW)["proxy for a client"]
    with_token = cases("original", NOW)["proxy, client's token"]
    by_word = session_of(connect(behind).connect, None, told.service, told.proxies)
    by_token = session_of(connect(with_token).connect, None, proved.service, proved.proxies)
    assert by_word.checked_roles == by_token.checked_roles == ("proxy", "ann")
    assert (by_word.original_is_proved, by_token.original_is_proved) == (False, True)


def test_an_original_principal_claimed_by_an_anonymous_peer_is_refused(tmp_path: Path) -> None:
    rules = rules_of("original", tmp_path)
    fields = cases("original", NOW)["anonymous for another"]
    with pytest.raises(RequestError, match="Invalid roles"):
        # The role is a proxy's, without a valid client.
        session_of(connect(fields).connect, None, rules.service, rules.proxies)
