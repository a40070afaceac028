"""The Java client by TLS, with certificates on both sides, directly and through the proxy."""

from contextlib import ExitStack
from dataclasses import replace

from loadgen.places.server_process import running_server
from tests.official.clients import ClientMissingError, OfficialClient, java_client
from tests.official.runs import ClientRun, Target, run_client
from tests.official.servers import ANY_TARGET
from tests.proof.result import ProofOptions, ProofResult
from tests.proof.servers import ClusterSettings
from tests.support.certificates import PemFiles
from tests.support.processes.free_port import free_port

CIPHER, OTHER_CIPHER = (
    f"TLS_ECDHE_ECDSA_WITH_AES_{suite}" for suite in ("256_GCM_SHA384", "128_GCM_SHA256")
)
QUICK = ("plain", "shared", "http_lookup")


def prove(options: ProofOptions) -> ProofResult:
    """Run its scenarios by TLS 1.3, by one cipher of TLS 1.2, and by an unsupported cipher."""
    result = ProofResult()
    try:
        client = java_client()
    except ClientMissingError as missing:
        result.check("Java", True, f"not played. {missing}")
        return result
    names = QUICK if options.quick else ()
    for title, keys, cipher in (
        ("TLS 1.3", {}, None),
        ("one cipher of TLS 1.2", {"tlsCiphers": CIPHER, "webServiceTlsCiphers": CIPHER}, CIPHER),
    ):
        folder = options.out / title.replace(" ", "-")
        folder.mkdir(parents=True, exist_ok=True)
        pem = PemFiles(folder)
        with ExitStack() as stack:
            ways = _serving(stack, ClusterSettings(folder, {**_tls(pem), **keys}, {}), pem)
            for way, (target, web) in ways.items():
                options.note(f"{title}, {way}")
                shown = _with_tls(client, pem, web, cipher)
                run = run_client(shown, target, folder / way.replace(" ", "-"), names)
                _judge(f"{title}, {way}", run, result)
            if cipher is not None:
                target, web = ways["direct"]
                other = _with_tls(client, pem, web, OTHER_CIPHER)
                run = run_client(other, target, folder / "other", QUICK[:1])
                result.check("another cipher", not run.same, "another cipher is refused")
    return result


def _tls(pem: PemFiles) -> dict[str, str]:
    """Return the keys of servers with TLS and required client certificates."""
    return pem.keys(tlsTrustCertsFilePath=pem.trust, tlsRequireTrustedClientCertOnConnect="true")


def _serving(
    stack: ExitStack, settings: ClusterSettings, pem: PemFiles
) -> dict[str, tuple[Target, str]]:
    """Run both servers; return the clients' addresses: by TLS, and REST without."""
    ports = [free_port() for _ in range(4)]
    by_tls = [f"{scheme}://127.0.0.1" for scheme in ("pulsar+ssl", "https")] * 2
    urls = [f"{url}:{port}" for url, port in zip(by_tls, ports, strict=True)]
    launch = settings.broker_launch()
    own = {"brokerServicePortTls": str(ports[0]), "webServicePortTls": str(ports[1])}
    launch = replace(launch, settings={**launch.settings, **own})
    broker = stack.enter_context(running_server(launch))
    launch = settings.proxy_launch(broker)
    certificate, key = pem.pair("proxy", "a-proxy")
    own = dict(
        servicePortTls=str(ports[2]),
        webServicePortTls=str(ports[3]),
        tlsEnabledWithBroker="true",
        tlsHostnameVerificationEnabled="true",
        brokerServiceURLTLS=urls[0],
        brokerWebServiceURLTLS=urls[1],
        brokerClientTrustCertsFilePath=pem.trust,
        brokerClientCertificateFilePath=certificate,
        brokerClientKeyFilePath=key,
        **ANY_TARGET,
    )
    launch = replace(launch, settings={**launch.settings, **own})
    proxy = stack.enter_context(running_server(launch))
    return {
        "direct": (Target(urls[0], broker.web_url), urls[1]),
        "through the proxy": (Target(urls[2], proxy.web_url), urls[3]),
    }


def _with_tls(
    client: OfficialClient, pem: PemFiles, web: str, cipher: str | None
) -> OfficialClient:
    """Return the client with a certificate; its HTTP lookups go to ``web``."""
    certificate, key = pem.pair("client", "a-client")
    said = {"trust": pem.trust, "certificate": certificate, "key": key, "web": web}
    if cipher is not None:
        said["cipher"] = cipher
    java, *others = client.command
    properties = (f"-Dtls.{name}={value}" for name, value in said.items())
    return replace(client, command=(java, *properties, *others))


def _judge(title: str, run: ClientRun, result: ProofResult) -> None:
    result.figures[title] = vars(run)
    lines = [difference.splitlines()[0] for difference in run.differences]
    same = f"{len(run.same)} scenarios as a real broker"
    result.check(title, not run.differences, f"{title}: {'; '.join(lines) or same}")
