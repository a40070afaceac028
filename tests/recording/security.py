"""Record a real broker's and a real proxy's answers to each credential.

    python -m tests.recording.security --broker HOST:PORT --web HOST:PORT [--proxy HOST:PORT]

No server is started. The servers run with token authentication and authorization; ``--keys`` prints
the required keys of a broker or a proxy, a ``key=value`` per line. With ``--forwarding`` the proxy
forwards credentials to the broker: a separate recording.
"""

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.support.security.binary import (
    ANSWERED_BY_PROXY,
    ASKERS_OF_NAMES,
    QUESTIONS,
    QUESTIONS_OF_NAMES,
    answers,
    connect,
    connect_cases,
    question,
)
from tests.support.security.credentials import (
    PROXY_ROLES,
    SUPERUSERS,
    Credential,
    few_wrong_credentials,
    key_url,
    right_credentials,
    token,
    wrong_credentials,
)
from tests.support.security.expiry import record_expiry
from tests.support.security.rest_calls import record as record_rest
from tests.support.security.revoked import record_revoked
from tests.support.security.world import build

_TESTS = Path(__file__).parents[1]
_FOLDER = _TESTS / "data" / "security"
_SAMPLES = _TESTS / "golden" / "messages" / "rest.jsonl"
_PACKAGE = "org.apache.pulsar"


def keys(server: str, *, forwarding: bool) -> list[str]:
    """Return the keys of a server's configuration.

    Args:
        server: ``broker`` or ``proxy``.
        forwarding: Whether the proxy forwards credentials to the broker.
    """
    role = "broker" if server == "broker" else "gate"
    found = {
        "authenticationEnabled": "true",
        "authenticationProviders": (
            f"{_PACKAGE}.broker.authentication.AuthenticationProviderToken"
        ),
        "tokenSecretKey": key_url(),
        "superUserRoles": ",".join(SUPERUSERS),
        "brokerClientAuthenticationPlugin": f"{_PACKAGE}.client.impl.auth.AuthenticationToken",
        "brokerClientAuthenticationParameters": f"token:{token(role)}",
        "authenticationRefreshCheckSeconds": "1",
    }
    if server == "broker":
        found |= {
            "authorizationEnabled": "true",
            "proxyRoles": ",".join(PROXY_ROLES),
            "authorizationAllowWildcardsMatching": "true",
        }
        if forwarding:
            found["authenticateOriginalAuthData"] = "true"
    else:
        found |= {
            "brokerProxyAllowedHostNames": "*",
            "brokerProxyAllowedIPAddresses": "*",
            "brokerProxyAllowedTargetPorts": "*",
            "forwardAuthorizationCredentials": str(forwarding).lower(),
        }
    return [f"{key}={value}" for key, value in found.items()]


def _write(name: str, rows: Iterable[dict[str, Any]]) -> None:
    lines = 0
    with (_FOLDER / name).open("w", encoding="utf-8") as file:
        for row in rows:
            lines += 1
            file.write(f"{json.dumps(row, separators=(',', ':'))}\n")
            file.flush()
    sys.stdout.write(f"{name}: {lines} lines\n")
    sys.stdout.flush()


def _connects(address: str) -> Iterable[dict[str, Any]]:
    for name, commands in connect_cases([*wrong_credentials(), *right_credentials()]):
        yield {"name": name, "answers": answers(address, commands, last_only=False)}


def _questions(address: str, via: str) -> Iterable[dict[str, Any]]:
    no_role = [one for one in wrong_credentials() if one.name == "(no subject)"]
    right = [one for one in right_credentials() if via == "broker" or not one.original]
    yield from _asked_by(address, via, QUESTIONS, right + no_role)


def _asked_by(
    address: str, via: str, questions: Iterable[tuple[str, str]], who: Iterable[Credential]
) -> Iterable[dict[str, Any]]:
    for kind, subject in questions:
        outcomes: dict[str, list[str]] = {}
        for one in who:
            named = subject.replace("{who}", one.name.replace(" ", "-").strip("()"))
            fields: dict[str, Any] = {"flags": ["supports_topic_watchers"]}
            if via != "broker" and kind not in ANSWERED_BY_PROXY:
                fields["proxy_to_broker_url"] = via
            asked = [connect(one, **fields), question(kind, named)]
            found = answers(address, asked, last_only=True)
            said = " then ".join(found).replace(one.name.replace(" ", "-").strip("()"), "{who}")
            outcomes.setdefault(said, []).append(one.name)
        yield {
            "asks": kind,
            "about": subject,
            "outcomes": [{"answer": answer, "who": names} for answer, names in outcomes.items()],
        }


def _record_broker(address: str, web: str) -> None:
    _write("connect.jsonl", _connects(address))
    _write("questions.jsonl", _questions(address, "broker"))
    few = [one for one in right_credentials() if one.name in ASKERS_OF_NAMES]
    _write("names.jsonl", _asked_by(address, "broker", QUESTIONS_OF_NAMES, few))
    _write("expiry.jsonl", record_expiry(address))
    if web:
        _write("revoked.jsonl", record_revoked(address, web))


def main() -> int:
    """Record all credentials at the given addresses."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", choices=("broker", "proxy"))
    for name in ("broker", "web", "proxy"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--forwarding", action="store_true")
    asked = parser.parse_args()
    if asked.keys:
        sys.stdout.write("\n".join(keys(asked.keys, forwarding=asked.forwarding)) + "\n")
        return 0
    _FOLDER.mkdir(parents=True, exist_ok=True)
    if asked.web:
        build(asked.web)
    if asked.forwarding:
        _write("forwarding-connect.jsonl", _connects(asked.broker))
        _write("forwarding-proxy-connect.jsonl", _connects(asked.proxy))
        _write("forwarding-proxy-questions.jsonl", _questions(asked.proxy, asked.broker))
        _write("forwarding-proxy-expiry.jsonl", record_expiry(asked.proxy))
        return 0
    if asked.broker:
        _record_broker(asked.broker, asked.web)
    if asked.proxy:
        _write("proxy-connect.jsonl", _connects(asked.proxy))
        _write("proxy-questions.jsonl", _questions(asked.proxy, asked.broker))
        _write("proxy-expiry.jsonl", record_expiry(asked.proxy))
    if asked.web:
        who = [
            *few_wrong_credentials(),
            *sorted(right_credentials(), key=lambda one: _power(one.name)),
        ]
        _write("rest.jsonl", record_rest(asked.web, _SAMPLES, who))
    return 0


def _power(name: str) -> int:
    return ("admin" in name) + 2 * ("super" in name)


if __name__ == "__main__":
    sys.exit(main())
