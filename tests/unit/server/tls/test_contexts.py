"""TLS contexts: refused in a sentence, and reloaded when certificates change."""

import errno
import logging
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from proto.errors import RemoteProtocolError
from proto.transport.tls import TlsLayer
from server.tls.contexts import (
    ClientTls,
    ServerTls,
    accepting_context,
    connecting_context,
)
from server.tls.refreshed import TlsFilesError
from server.tls.settings import ClientTlsSettings, ServerTlsSettings, TlsFiles, chosen
from tests.support.certificates import SERVER, PemFiles
from tests.support.clocks.manual_clock import ManualClock


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> PemFiles:
    return PemFiles(tmp_path_factory.mktemp("pem"))


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> PemFiles:
    return PemFiles(tmp_path_factory.mktemp("others"))


def port(pair: tuple[str, str], trust: str = "", **more: Any) -> ServerTlsSettings:
    files = TlsFiles(certificate=pair[0], key=pair[1], trust=trust)
    return ServerTlsSettings(files=files, **more)


def to_broker(trust: str, pair: tuple[str, str] = ("", ""), **more: Any) -> ClientTlsSettings:
    files = TlsFiles(prefix="brokerClient", certificate=pair[0], key=pair[1], trust=trust)
    return ClientTlsSettings(files=files, **more)


def shake(server: TlsLayer, client: TlsLayer) -> None:
    """Carry both sides' bytes until both are established, or one fails."""
    client.start()
    for _ in range(6):
        server.receive(client.take_outgoing())
        client.receive(server.take_outgoing())
    assert server.established
    assert client.established


def subject(layer: TlsLayer) -> str | None:
    certificate = layer.peer_certificate()
    return (
        None
        if certificate is None
        else dict(part[0] for part in certificate["subject"])["commonName"]
    )


def both(
    server: ServerTlsSettings, client: ClientTlsSettings, host: str = SERVER
) -> tuple[TlsLayer, TlsLayer]:
    clock = ManualClock()
    layers = ServerTls(server, clock).layer(), ClientTls(client, clock).layer(host)
    shake(*layers)
    return layers


def test_a_broker_of_the_trusted_authority_is_accepted(pem: PemFiles) -> None:
    server, client = both(port(pem.server), to_broker(pem.trust))
    assert subject(client) == SERVER
    assert subject(server) is None
    assert client.receive(server.encrypt(b"hello")) == b"hello"


def test_an_untrusted_broker_is_refused_unless_insecure_connections_are_allowed(
    pem: PemFiles, others: PemFiles
) -> None:
    with pytest.raises(RemoteProtocolError, match="CERTIFICATE_VERIFY_FAILED"):
        both(port(others.server), to_broker(pem.trust))
    both(port(others.server), to_broker(pem.trust, allows_insecure=True))


def test_the_host_name_is_verified_only_if_configured(pem: PemFiles) -> None:
    both(port(pem.server), to_broker(pem.trust), "elsewhere")
    with pytest.raises(RemoteProtocolError, match="CERTIFICATE_VERIFY_FAILED"):
        both(port(pem.server), to_broker(pem.trust, verifies_host_name=True), "elsewhere")
    both(port(pem.server), to_broker(pem.trust, verifies_host_name=True))


def test_a_client_certificate_is_requested_or_required_as_configured(
    pem: PemFiles, others: PemFiles
) -> None:
    asks = port(pem.server, pem.trust, asks_for_client_certificate=True)
    requires = port(pem.server, pem.trust, requires_client_certificate=True)
    known, unknown = pem.pair("client", "a-client"), others.pair("client", "a-client")
    for settings in (asks, requires):
        server, _ = both(settings, to_broker(pem.trust, known))
        assert subject(server) == "a-client"
        with pytest.raises(RemoteProtocolError, match="CERTIFICATE_VERIFY_FAILED"):
            both(settings, to_broker(pem.trust, unknown))
    # The client shows no certificate
    server, _ = both(asks, to_broker(pem.trust))
    assert subject(server) is None
    with pytest.raises(RemoteProtocolError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
        both(requires, to_broker(pem.trust))


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_a_handshake_needs_a_common_protocol(pem: PemFiles, version: str) -> None:
    other = "TLSv1.3" if version == "TLSv1.2" else "TLSv1.2"
    both(port(pem.server, protocols=(version,)), to_broker(pem.trust))
    with pytest.raises(RemoteProtocolError, match="TLS handshake failed"):
        both(port(pem.server, protocols=(version,)), to_broker(pem.trust, protocols=(other,)))


def test_a_handshake_needs_a_common_cipher(pem: PemFiles) -> None:
    old = ("TLSv1.2",)
    one, other = (
        chosen((f"TLS_ECDHE_ECDSA_WITH_AES_{bits}",))
        for bits in ("128_GCM_SHA256", "256_GCM_SHA384")
    )
    both(
        port(pem.server, protocols=old, ciphers=one),
        to_broker(pem.trust, protocols=old, ciphers=one),
    )
    with pytest.raises(RemoteProtocolError, match="TLS handshake failed"):
        both(
            port(pem.server, protocols=old, ciphers=one),
            to_broker(pem.trust, protocols=old, ciphers=other),
        )


def test_session_tickets_are_disabled(pem: PemFiles) -> None:
    context = accepting_context(port(pem.server, pem.trust))
    assert context.num_tickets == 0
    assert context.options & ssl.OP_NO_TICKET


def missing(pem: PemFiles, folder: Path) -> tuple[ServerTlsSettings, str]:
    del folder
    return port(("none.pem", pem.server[1])), "tlsCertificateFilePath='none.pem': cannot be read"


def a_folder(pem: PemFiles, folder: Path) -> tuple[ServerTlsSettings, str]:
    return port((pem.server[0], str(folder))), "tlsKeyFilePath="


def no_pem(pem: PemFiles, folder: Path) -> tuple[ServerTlsSettings, str]:
    (folder / "x.pem").write_bytes(b"\xfe\xed\xfe\xed not PEM")
    return port(pem.server, str(folder / "x.pem")), "tlsTrustCertsFilePath="


def another_key(pem: PemFiles, folder: Path) -> tuple[ServerTlsSettings, str]:
    del folder
    return port((pem.server[0], pem.pair("another", "x")[1])), "the key is another certificate's"


def no_key(pem: PemFiles, folder: Path) -> tuple[ServerTlsSettings, str]:
    (folder / "x.key").write_text("secret words")
    return port((pem.server[0], str(folder / "x.key"))), "not a certificate and its private key"


@pytest.mark.parametrize("case", [missing, a_folder, no_pem, another_key, no_key])
def test_unusable_files_are_reported_in_a_single_sentence_without_contents(
    pem, tmp_path, case
) -> None:
    settings, sentence = case(pem, tmp_path)
    with pytest.raises(TlsFilesError) as caught:
        accepting_context(settings)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_keys_of_broker_connections_are_named_with_their_prefix() -> None:
    with pytest.raises(TlsFilesError, match=r"^brokerClientTrustCertsFilePath='none\.pem'"):
        connecting_context(to_broker("none.pem"))


class Replaced:
    """A port whose files are replaced, each time by files of a new authority."""

    def __init__(self, folder: Path, refresh_seconds: int) -> None:
        self._folder = folder
        self.clock = ManualClock()
        self.pem = PemFiles(folder)
        settings = port(
            self.pem.server,
            self.pem.trust,
            refresh_seconds=refresh_seconds,
            requires_client_certificate=True,
        )
        self.tls = ServerTls(settings, self.clock)

    def replace(self) -> None:
        self.pem = PemFiles(self._folder)

    def takes(self, server: TlsLayer | None = None, host: str = SERVER) -> bool:
        """Tell whether the port has the newest certificate, and trusts the newest authority."""
        settings = to_broker(self.pem.trust, self.pem.pair("client", "a-client"))
        try:
            client = ClientTls(settings, self.clock).layer(host)
            shake(server or self.tls.layer(), client)
        except RemoteProtocolError:
            return False
        return True


def test_replaced_certificates_are_in_force_after_the_next_check(tmp_path: Path) -> None:
    port = Replaced(tmp_path, 300)
    assert port.takes()
    port.replace()
    port.clock.advance(299)
    assert not port.takes()
    port.clock.advance(1)
    assert port.takes()
    assert (port.tls.contexts.refreshed_total, port.tls.contexts.failed_total) == (1, 0)


@pytest.mark.parametrize(("seconds", "taken"), [(0, True), (-1, False)])
def test_a_refresh_interval_of_0_checks_each_connection_and_a_negative_interval_never(
    tmp_path, seconds: int, taken: bool
) -> None:
    port = Replaced(tmp_path, seconds)
    port.replace()
    port.clock.advance(10_000 * (not taken))
    assert port.takes() is taken


def test_a_broken_file_keeps_the_old_certificates_and_is_logged_once(tmp_path, caplog) -> None:
    port = Replaced(tmp_path, 0)
    with caplog.at_level(logging.ERROR):
        (tmp_path / "server.key").write_text("half a fi")
        taken = [port.takes() for _ in range(3)]
    assert taken == [True, True, True]
    assert port.tls.contexts.failed_total == 1
    (record,) = caplog.records
    assert "the old ones stay: tlsCertificateFilePath=" in record.getMessage()


def test_valid_files_that_could_not_be_read_once_are_used_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = Replaced(tmp_path, 0)

    def no_descriptors(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched, caplog.at_level(logging.ERROR):
        patched.setattr(ssl.SSLContext, "load_cert_chain", no_descriptors)
        port.replace()
        for _ in range(3):
            port.tls.layer()
    taken = port.takes()
    assert taken
    assert (port.tls.contexts.refreshed_total, port.tls.contexts.failed_total) == (1, 1)
    assert len(caplog.records) == 1


def test_a_host_without_a_possible_certificate_is_a_failed_connection(pem: PemFiles) -> None:
    with pytest.raises(ConnectionError, match="cannot be reached by TLS"):
        ClientTls(to_broker(pem.trust), ManualClock()).layer(".")


def test_the_earliest_expiry_of_the_certificates_is_reported(tmp_path: Path) -> None:
    # A file with the server's certificate and the signer's
    sooner, later = datetime(2040, 1, 2, tzinfo=UTC), datetime(2041, 1, 2, tzinfo=UTC)
    pem = PemFiles(tmp_path)
    certificate, key = pem.pair("server", SERVER, until=later)
    with Path(certificate).open("a") as file:
        file.write(Path(pem.pair("other", "x", until=sooner)[0]).read_text())
    tls = ServerTls(port((certificate, key), refresh_seconds=0), ManualClock())
    assert tls.contexts.expires_at == sooner.timestamp()
    pem.pair("server", SERVER, until=later)
    tls.layer()
    assert tls.contexts.expires_at == later.timestamp()
    # A client without a certificate has none that expires
    assert ClientTls(to_broker(pem.trust), ManualClock()).contexts.expires_at is None


@pytest.mark.parametrize("host", [SERVER, "a-name"])
def test_the_context_of_a_listener_uses_the_newest_files(tmp_path: Path, host: str) -> None:
    port = Replaced(tmp_path, 0)
    context = port.tls.http_context
    port.replace()
    # With the trust of the new files; a client connecting by address sends no name
    assert port.takes(TlsLayer(context, server_side=True), host)


def test_a_file_missing_between_check_and_load_keeps_the_old_context(
    pem: PemFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock()
    certificate = tmp_path / "server.pem"
    certificate.write_bytes(Path(pem.server[0]).read_bytes())
    tls = ServerTls(port((str(certificate), pem.server[1]), refresh_seconds=0), clock)
    before = tls.contexts.current()
    certificate.write_bytes(Path(pem.server[0]).read_bytes() + b"\n")

    def gone(*_: object, **__: object) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", gone)
    # An exception while accepting ends the listener
    after = tls.contexts.current()
    assert after is before
    assert tls.contexts.failed_total == 1
