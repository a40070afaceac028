"""A broker on a database and a proxy, with secrets in files, and all their output."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.processes import ROOT
from loadgen.places.server_process import ServerLaunch, ServerProcess, running_server
from tests.proof.secrets.planted import Planted
from tests.proof.secrets.searching import ProcessWatch
from tests.proof.servers import LOCAL
from tests.support.processes.postgresql import PostgresqlServer

PROVIDER = "org.apache.pulsar.broker.authentication.AuthenticationProvider"
_CLIENTS = "org.apache.pulsar.client.impl.auth.Authentication"
_COMMAND_SECONDS = 120.0


@dataclass
class Said:
    """All output, by its source."""

    texts: list[tuple[str, bytes]] = field(default_factory=list)

    def add(self, place: str, content: bytes | str) -> None:
        data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
        self.texts.append((place, data))


@dataclass(frozen=True)
class Stage:
    """The servers of a run, and their recorded output."""

    planted: Planted
    out: Path
    broker: ServerProcess
    proxy: ServerProcess
    said: Said
    watch: ProcessWatch


@contextmanager
def running_stage(
    planted: Planted,
    out: Path,
    log_format: str,
    said: Said,
    watch: ProcessWatch,
    database: PostgresqlServer,
) -> Iterator[Stage]:
    """Run a broker and a proxy that log everything, with secrets from files and in files."""
    certificate, key = planted.pem.server
    both = {
        **LOCAL,
        "webServicePortTls": "0",
        "tlsCertificateFilePath": certificate,
        "tlsKeyFilePath": key,
        "authenticationEnabled": "true",
        "authenticationProviders": f"{PROVIDER}Token,{PROVIDER}Basic",
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
        # The server trusts every client, so that any password is right.
        "metadataStoreUrl": database.url().replace(
            "floodgate@", f"floodgate:{planted.words['database-password']}@"
        ),
        "authenticateOriginalAuthData": "true",
        "proxyRoles": "gate",
        "authorizationEnabled": "true",
        "superUserRoles": "admin,gate,soon,renewed",
        "pulsarResourcesExtendedClassName": "tests.proof.secrets.raising:Raising",
        # Known and without effect: shown like any key.
        "brokerClientAuthenticationParameters": f"token:{planted.tokens['gate']}",
        "bookkeeperClientAuthenticationParameters": planted.words["in-a-setting"],
        "brokerClientTlsKeyStorePassword": planted.words["in-a-setting"],
    }
    words = ["--log-level", "debug", "--log-format", log_format]
    broker_file = written_conf(planted, "broker.conf", of_broker)
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
        proxy_file = written_conf(planted, "proxy.conf", of_proxy)
        launch = ServerLaunch("proxy", {}, out / "proxy.log", [*words, str(proxy_file)])
        with running_server(launch) as proxy:
            yield Stage(planted, out, broker, proxy, said, watch)


def written_conf(planted: Planted, name: str, keys: Mapping[str, str]) -> Path:
    return planted.file(name, "".join(f"{key}={value}\n" for key, value in keys.items()))


def run_words(said: Said, name: str, words: list[str], planted: Planted) -> int:
    """Run a program of the project, record its output, and return its exit code."""
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
