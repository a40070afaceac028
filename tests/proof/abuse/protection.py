"""Protection of servers as by an operator: certificates, tokens, limits; and invalid tokens."""

import base64
import json
import os
from dataclasses import dataclass
from pathlib import Path

import jwt

from loadgen.places.server_process import ServerProcess
from tests.proof.servers import limits, rest
from tests.support.certificates import PemFiles
from tests.support.processes.free_port import free_port

LIMIT_MB, TENANT_BYTES = 40, 4_000_000
TIMEOUT_MILLIS = 5_000
ADMIN, PROXY, HEALTHY, ATTACKER = "admin", "proxy", "healthy", "attacker"
_ALGORITHM = "HS256"
_TOKENS = "org.apache.pulsar.broker.authentication.AuthenticationProviderToken"
_TOKEN_OF_PROXY = "org.apache.pulsar.client.impl.auth.AuthenticationToken"
BOTH = {
    "floodgateProfile": "floodgate",
    "floodgateSocketSendBufferBytes": "65536",
    "floodgateTopicListMaxBytesPerTenant": str(TENANT_BYTES),
    "floodgateHandshakeTimeoutMs": "2000",
    "floodgateTlsHandshakeTimeoutMs": "2000",
    "floodgateHttpRequestTimeoutMs": "3000",
    "floodgateMaxRequestsPerSecondPerConnection": "300",
    "floodgateMaxUnfinishedFramesMB": "64",
    "maxHttpServerConnections": "4096",
    "authenticateMetricsEndpoint": "false",
    **limits(LIMIT_MB, TIMEOUT_MILLIS),
}
BROKER = {
    "metadataStoreUrl": "memory:local",
    "brokerDeleteInactiveTopicsEnabled": "false",
    "subscriptionPatternMaxLength": "200",
    "floodgateMessageStoreMaxMB": "64",
    "floodgateMessageStoreMaxNamespaceMB": "10",
    "floodgateListingCacheMB": "16",
    "maxTopicsPerNamespace": "5000",
    "brokerMaxConnections": "12000",
    "brokerMaxConnectionsPerIp": "1000",
    "authorizationEnabled": "true",
    "superUserRoles": f"{ADMIN},{PROXY}",
    "proxyRoles": PROXY,
}
PROXY_KEYS = {
    "maxConcurrentInboundConnections": "12000",
    "maxConcurrentInboundConnectionsPerIp": "1000",
    "brokerProxyAllowedTargetPorts": "*",
    "brokerClientAuthenticationPlugin": _TOKEN_OF_PROXY,
}


@dataclass(frozen=True)
class Protection:
    """Keys of both servers, their TLS ports, and the peers' credentials.

    Attributes:
        tls_ports: Ports of the binary protocol and HTTP, by role.
    """

    folder: Path
    secret: bytes
    both: dict[str, str]
    broker: dict[str, str]
    proxy: dict[str, str]
    tls_ports: dict[str, tuple[int, int]]

    def token_file(self, role: str) -> Path:
        return self.folder / f"{role}.jwt"

    def token(self, role: str) -> str:
        return self.token_file(role).read_text()

    def bad_tokens(self) -> tuple[str, ...]:
        """Return tokens to be refused: of another key, expired, unsigned, broken, huge."""
        claims = {"sub": ADMIN}
        good = self.token(ATTACKER)
        head, body, signature = good.split(".")
        stolen = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
        return (
            jwt.encode(claims, os.urandom(32), _ALGORITHM),
            jwt.encode({**claims, "exp": 1}, self.secret, _ALGORITHM),
            jwt.encode(claims, None, "none"),
            f"{head}.{stolen}.{signature}",
            f"{head}.{body}.",
            "x" * 1_000,
            "." * 10_000,
            f"{head}.{'e30' * 15_000}.{signature}",
            "\x00",
        )


def protection(folder: Path) -> Protection:
    """Write all files named by the servers' keys."""
    folder.mkdir(parents=True, exist_ok=True)
    secret = os.urandom(32)
    (folder / "secret.key").write_bytes(secret)
    for role in (ADMIN, PROXY, HEALTHY, ATTACKER):
        (folder / f"{role}.jwt").write_text(jwt.encode({"sub": role}, secret, _ALGORITHM))
    ports = {"broker": (free_port(), free_port()), "proxy": (free_port(), free_port())}
    both = {
        **BOTH,
        **PemFiles(folder).keys(),
        "authenticationEnabled": "true",
        "authenticationProviders": _TOKENS,
        "tokenSecretKey": f"file://{folder.absolute()}/secret.key",
    }
    broker = {
        **BROKER,
        "brokerServicePortTls": str(ports["broker"][0]),
        "webServicePortTls": str(ports["broker"][1]),
    }
    proxy = {
        **PROXY_KEYS,
        "servicePortTls": str(ports["proxy"][0]),
        "webServicePortTls": str(ports["proxy"][1]),
        "brokerClientAuthenticationParameters": f"file://{folder.absolute()}/{PROXY}.jwt",
    }
    return Protection(folder, secret, both, broker, proxy, ports)


def grant(broker: ServerProcess, protected: Protection) -> None:
    """Give healthy clients and the attacker a tenant each: an attacker with an account is worse."""
    headers = {"Authorization": f"Bearer {protected.token(ADMIN)}"}
    for tenant, role in (("public", HEALTHY), ("hostile", ATTACKER)):
        document = rest(broker.web_url, "GET", f"tenants/{tenant}", headers=headers)
        document["adminRoles"] = [role]
        rest(broker.web_url, "POST", f"tenants/{tenant}", document, headers)
