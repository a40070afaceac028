"""No planted secret is in what broker, proxy, command line and load generator leave or show."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks.processes import ROOT
from loadgen.servers.processes import ServerLaunch, running_server
from server.authentication.passwords import apr1
from tests.proof.result import ProofOptions, ProofResult
from tests.proof.secrets.planted import Planted
from tests.proof.secrets.searching import ProcessWatch, Search
from tests.proof.secrets.strangers import ask_pages, say_wrong_things
from tests.proof.servers import LOCAL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from loadgen.servers.processes import ServerProcess

_PROVIDER = "org.apache.pulsar.broker.authentication.AuthenticationProvider"
_CLIENTS = "org.apache.pulsar.client.impl.auth.Authentication"
_COMMAND_SECONDS = 120.0
_REFUSED = (1, 2)
_DOCUMENT = """\
extends: restart-storm
name: planted
cluster:
  broker:
    tokenSecretKey: {}
"""
_OF_A_WHOLE_RUN = {
    "broker.log": ("ZeroDivisionError", "fresh credentials", "AUTH_RESPONSE", "SEND"),
    "proxy.log": ("AUTH_CHALLENGE", "Failed to authenticate", "refused a request"),
}
"""Words of the logs without which a run has not met what it is for."""


@dataclass
class Said:
    """All that was said, by what said it."""

    texts: list[tuple[str, bytes]] = field(default_factory=list)

    def add(self, place: str, content: bytes | str) -> None:
        """Keep what was said."""
        data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
        self.texts.append((place, data))


@dataclass(frozen=True)
class Stage:
    """The servers of one run, and what all is said to."""

    planted: Planted
    out: Path
    broker: ServerProcess
    proxy: ServerProcess
    said: Said
    watch: ProcessWatch


def prove(options: ProofOptions) -> ProofResult:
    """Play a run in each form of logs, search all that is left of it."""
    result = ProofResult()
    planted = Planted(options.out / "planted")
    bcrypt = apr1(planted.words["password"].encode(), "saltsalt")
    planted.passwords.write_text(f"ann:{bcrypt}\n", encoding="utf-8")
    said = Said()
    with ProcessWatch() as watch:
        for log_format in ("console", "json"):
            out = options.out / log_format
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir(parents=True)
            options.note(f"servers with logs for {log_format}")
            with running_stage(planted, out, log_format, said, watch) as stage:
                _play(stage, result, options)
        options.note("configurations that are wrong")
        _start_wrongly(planted, options.out, said, result)
    options.note("search")
    search = Search(planted.forms())
    for place, content in said.texts:
        search.text(place, content)
    for kind, content in watch.seen:
        search.text(
            f"a process's {kind}", content, but="in-a-variable" if kind == "environ" else ""
        )
    search.folder(options.out, [planted.folder])
    result.figures |= {
        "forms": len(planted.forms()),
        "places": search.places,
        "bytes_searched": search.bytes_searched,
        "finds": search.finds,
    }
    _check_search(planted, result)
    result.check(
        "no secrets",
        not search.finds,
        f"{len(planted.words)} secrets, {search.places} places, {search.bytes_searched:,} bytes: "
        + ("; ".join(search.finds[:5]) or "nothing found"),
    )
    return result


def _check_search(planted: Planted, result: ProofResult) -> None:
    """See that the search finds what there is: the files with the secrets."""
    control = Search(planted.forms())
    control.folder(planted.folder, [])
    found = {name for name in planted.words if any(f": {name} " in one for one in control.finds)}
    expected = {"secret-key", "private-key", "tls-key"}
    tokens = sum(name.startswith("token-of") for name in found)
    result.check(
        "the search finds",
        expected <= found and tokens > 1,
        f"{len(found)} of the secrets are found in the files that hold them",
    )


@contextmanager
def running_stage(
    planted: Planted, out: Path, log_format: str, said: Said, watch: ProcessWatch
) -> Iterator[Stage]:
    """Run a broker and a proxy that log everything, with secrets from files and in files."""
    certificate, key = planted.pem.server
    both = {
        **LOCAL,
        "webServicePortTls": "0",
        "tlsCertificateFilePath": certificate,
        "tlsKeyFilePath": key,
        "authenticationEnabled": "true",
        "authenticationProviders": f"{_PROVIDER}Token,{_PROVIDER}Basic",
        "tokenSecretKey": f"file://{planted.secret_key}",
        "basicAuthConf": f"file://{planted.passwords}",
        "floodgateFaultsEnabled": "true",
        "statusFilePath": str(planted.folder / "broker.conf"),
        "authenticationRefreshCheckSeconds": "1",
    }
    of_broker = {
        **both,
        "brokerServicePort": "0",
        "brokerServicePortTls": "0",
        "authenticateOriginalAuthData": "true",
        "proxyRoles": "gate",
        "superUserRoles": "admin",
        "pulsarResourcesExtendedClassName": "tests.proof.secrets.raising:Raising",
        # Known and without effect: shown with all others.
        "brokerClientAuthenticationParameters": f"token:{planted.tokens['gate']}",
        "bookkeeperClientAuthenticationParameters": planted.words["in-a-setting"],
        "brokerClientTlsKeyStorePassword": planted.words["in-a-setting"],
    }
    words = ["--log-level", "debug", "--log-format", log_format]
    broker_file = _conf(planted, "broker.conf", of_broker)
    launch = ServerLaunch("broker", {}, out / "broker.log", [*words, str(broker_file)])
    with running_server(launch) as broker:
        of_proxy = {
            **both,
            "servicePort": "0",
            "brokerServiceURL": broker.service_url,
            "brokerWebServiceURL": broker.web_url,
            "brokerProxyAllowedTargetPorts": "*",
            "brokerClientAuthenticationPlugin": f"{_CLIENTS}Token",
            "brokerClientAuthenticationParameters": f"token:{planted.tokens['gate']}",
            "forwardAuthorizationCredentials": "true",
        }
        proxy_file = _conf(planted, "proxy.conf", of_proxy)
        launch = ServerLaunch("proxy", {}, out / "proxy.log", [*words, str(proxy_file)])
        with running_server(launch) as proxy:
            yield Stage(planted, out, broker, proxy, said, watch)


def _conf(planted: Planted, name: str, keys: Mapping[str, str]) -> Path:
    return planted.file(name, "".join(f"{key}={value}\n" for key, value in keys.items()))


def _play(stage: Stage, result: ProofResult, options: ProofOptions) -> None:
    for name, status in _commands(stage, result).items():
        result.check(name, status == 0, f"{name} ended with {status}")
    asyncio.run(say_wrong_things(stage.planted, stage.broker, stage.proxy, stage.said.add))
    options.note("pages")
    for server in (stage.broker, stage.proxy):
        ask_pages(stage.planted, server, stage.said.add)
    for log, words in _OF_A_WHOLE_RUN.items():
        text = (stage.out / log).read_text(encoding="utf-8")
        missing = [word for word in words if word not in text]
        result.check(f"{log} is of a whole run", not missing, f"without {missing}")


def _commands(stage: Stage, result: ProofResult) -> dict[str, int]:
    """Run the command lines, right ones and wrong ones; return how the right ones ended."""
    planted, out = stage.planted, stage.out
    admin = ["-m", "client.admin", "--admin-url", stage.broker.web_url]
    good = [*admin, "--auth-params", planted.where("admin")]
    option, url = planted.words["in-an-option"], planted.words["in-a-url"]
    with_user = stage.broker.web_url.replace("://", f"://ann:{url}@")
    load = ["-m", "loadgen", "--auth-params", planted.where("admin"), "run", "--namespace"]
    load += ["public/default", "--executor", "process", "--clients", "20", "--allow-empty"]
    load += ["--service-url", stage.proxy.service_url, "--out", str(out / "runs")]
    load += ["--broker-admin-url", stage.broker.web_url]
    right = {
        "topics create": [*good, "topics", "create", "public/default/one"],
        "topics list": [*good, "topics", "list", "public/default", "--json"],
        "configuration": [*good, "brokers", "get-runtime-config", "--json"],
        "a fault": [
            *good, "faults", "set",
            json.dumps({"on": ["SEEK"], "do": {"action": "error", "error": "ServiceNotReady"}}),
        ],
        "faults list": [*good, "faults", "list"],
        "tokens show": ["-m", "client.admin", "tokens", "show", "--token-file",
                        str(planted.folder / "admin.jwt")],
        "a load with a report": [*load, "--name", "right"],
    }  # fmt: skip
    wrong = {
        "nobody": [*admin, "tenants", "list"],
        "late": [*admin, "--auth-params", planted.where("late"), "tenants", "list"],
        "a password": [*admin, "--auth-plugin", "basic", "--auth-params", "env:PLANTED",
                       "tenants", "list"],
        "no token": [*admin, "--auth-params", f"file:{planted.private_key}", "tenants", "list"],
        "a load of nobody": [one.replace("admin.jwt", "late.jwt") for one in load],
        "another key": ["-m", "client.admin", "tokens", "validate", "--secret-key",
                        f"file:{planted.private_key}", "--token-file",
                        str(planted.folder / "admin.jwt")],
        "a private key for a public one": ["-m", "client.admin", "tokens", "validate",
                        "--public-key", f"file:{planted.private_key}", "--token-file",
                        str(planted.folder / "admin.jwt")],
    }  # fmt: skip
    ended = {name: _run(stage.said, name, words, planted) for name, words in right.items()}
    refused = {name: _run(stage.said, name, words, planted) for name, words in wrong.items()}
    # What a user writes onto a command line is in the list of processes: it is refused at once, and
    # not said again. These are run apart, so that the watch does not take the user's word for ours.
    own = {
        "a token as an option": [*admin, "--auth-params", option, "tenants", "list"],
        "a load with a token": ["-m", "loadgen", "--auth-params", option, "run"],
        "a token to be shown": ["-m", "client.admin", "tokens", "show", "--token", option],
        "a secret to sign with": ["-m", "client.admin", "tokens", "create", "--secret-key",
                                  option, "--subject", "x"],
        "a secret set": ["-m", "broker", "--set", f"tokenSecretKey={option}"],
        "a password set": ["-m", "broker", "--set", f"metadataStoreUrl=postgresql://u:{url}@h/d"],
        "a user in a URL": [*load, "--name", "with-a-user", "--broker-admin-url", with_user],
        "a user in a URL of the admin": ["-m", "client.admin", "--admin-url", with_user,
                                         "tenants", "list"],
        "a token of the proxy": ["-m", "proxy", "--set",
                                 f"brokerClientAuthenticationParameters=token:{option}"],
    }  # fmt: skip
    with stage.watch.paused():
        refused |= {name: _run(stage.said, name, words, planted) for name, words in own.items()}
    result.check(
        "wrong command lines are refused",
        all(status in _REFUSED for status in refused.values()),
        ", ".join(f"{name}: {status}" for name, status in refused.items()),
    )
    return ended


def _run(said: Said, name: str, words: list[str], planted: Planted) -> int:
    environment = {**os.environ, "PLANTED": f"ann:{planted.words['in-a-variable']}"}
    done = subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        timeout=_COMMAND_SECONDS,
        check=False,
    )
    said.add(f"{name} (output)", done.stdout)
    said.add(f"{name} (errors)", done.stderr)
    return done.returncode


def _start_wrongly(planted: Planted, out: Path, said: Said, result: ProofResult) -> None:
    """Start servers with configurations that are wrong about, or beside, a secret."""
    words = planted.words
    tokens = {"authenticationEnabled": "true", "authenticationProviders": f"{_PROVIDER}Token"}
    bad_hashes = planted.file("hashes", f"bob:{words['in-a-hash']}\n")
    database = f"postgresql://floodgate:{words['database-password']}@127.0.0.1:1/floodgate"
    wrong = {
        "a short key": {**tokens, "tokenSecretKey": words["in-a-setting"][:20]},
        "a key that is none": {**tokens, "tokenPublicKey": words["in-a-setting"]},
        "a private key": {**tokens, "tokenPublicKey": f"file://{planted.private_key}"},
        "an unreachable database": {"metadataStoreUrl": database},
        "a database whose URL is broken": {"metadataStoreUrl": database.replace(":1/", ":x/")},
        "no certificate": {"brokerServicePortTls": "0", "tlsKeyFilePath": planted.pem.server[1],
                           "tlsCertificateFilePath": str(planted.private_key)},
        "other hashes": {"authenticationEnabled": "true", "basicAuthConf": f"file://{bad_hashes}",
                         "authenticationProviders": f"{_PROVIDER}Basic"},
        "a misspelt key": {"tokenSecretKeyy": words["in-a-setting"], "brokerServicePort": "x"},
    }  # fmt: skip
    ended = {}
    for number, (name, keys) in enumerate(wrong.items()):
        file = _conf(planted, f"wrong-{number}.conf", {**LOCAL, **keys})
        if number == 0:
            file.write_text(file.read_text() + f"{words['in-a-broken-line']}\n", encoding="utf-8")
        ended[name] = _run(said, name, ["-m", "broker", str(file)], planted)
    ended["a load of a broken file"] = _run(
        said,
        "a load of a broken file",
        ["-m", "loadgen", "run", "restart-storm", "--executor", "process", "--broker-conf",
         str(planted.folder / "wrong-0.conf"), "--out", str(out / "own")],
        planted,
    )  # fmt: skip
    document = planted.file("own.yaml", _DOCUMENT.format(words["in-a-setting"]))
    ended["a load of a document"] = _run(
        said,
        "a load of a document",
        ["-m", "loadgen", "run", str(document), "--executor", "process", "--out", str(out / "own")],
        planted,
    )
    result.check(
        "wrong configurations are refused",
        all(status in _REFUSED for status in ended.values()),
        ", ".join(f"{name}: {status}" for name, status in ended.items()),
    )
