"""Pulsar's keys of TLS."""

import pytest

from broker.configuration.config import BrokerConfig
from proxy.config import ProxyConfig
from server.errors import ConfigError
from server.tls.settings import CipherChoice

FILES = {"tlsCertificateFilePath": "/c.pem", "tlsKeyFilePath": "/k.pem"}
PORT = {"brokerServicePortTls": "6651", **FILES}
PROXY = {
    "tlsEnabledWithBroker": "true",
    "brokerServiceURLTLS": "pulsar+ssl://b:6651,c",
    "brokerWebServiceURLTLS": "https://b:8443/",
}


def broker(**keys: str) -> BrokerConfig:
    return BrokerConfig.from_properties({**PORT, **keys})


def proxy(**keys: str) -> ProxyConfig:
    return ProxyConfig.from_properties({**PROXY, **keys})


def problem(role: type[BrokerConfig | ProxyConfig], **keys: str) -> str:
    with pytest.raises(ConfigError) as caught:
        role.from_properties(keys)
    (sentence,) = caught.value.problems
    return sentence


def test_without_a_tls_port_there_are_no_tls_settings() -> None:
    made = BrokerConfig.from_properties(FILES)
    # And the given value has no effect
    assert (made.service_port_tls, made.tls, made.web_service_port_tls, made.web_tls) == (None,) * 4
    (notice,) = [one.sentence for one in made.notices if "tls" in one.sentence]
    assert notice.startswith("keys without effect here: tlsCertificateFilePath, tlsKeyFilePath")


def test_a_tls_port_has_the_defaults_of_upstream() -> None:
    made = broker(tlsTrustCertsFilePath="/t.pem")
    assert (made.broker_service_port, made.service_port_tls) == (6650, 6651)
    assert made.tls is not None
    assert made.tls.files.named() == {**FILES, "tlsTrustCertsFilePath": "/t.pem"}
    assert (made.tls.protocols, made.tls.ciphers) == (("TLSv1.2", "TLSv1.3"), CipherChoice())
    assert (made.tls.refresh_seconds, made.tls.handshake_seconds) == (300, 10.0)
    assert made.tls.asks_for_client_certificate
    assert not made.tls.requires_client_certificate


def test_binary_and_web_ports_have_separate_protocols_and_ciphers() -> None:
    made = broker(
        webServicePortTls="8443",
        tlsProtocols="TLSv1.3,TLSv1.2",
        tlsCiphers="TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        webServiceTlsProtocols="TLSv1.3",
    )
    assert made.tls is not None
    assert made.web_tls is not None
    assert made.tls.ciphers.openssl == "ECDHE-RSA-AES256-GCM-SHA384"
    assert made.tls.protocols == ("TLSv1.2",)
    assert made.web_tls.protocols == ("TLSv1.3",)
    assert made.web_tls.ciphers == CipherChoice()


def test_either_of_two_ports_may_be_closed_by_an_empty_value() -> None:
    made = broker(brokerServicePort="", webServicePort="", webServicePortTls="0")
    assert (made.broker_service_port, made.service_port_tls) == (None, 6651)
    assert (made.web_service_port, made.web_service_port_tls) == (None, 0)


def test_with_insecure_connections_no_client_certificate_is_requested() -> None:
    made = broker(tlsTrustCertsFilePath="/t.pem", tlsAllowInsecureConnection="true")
    assert made.tls is not None
    assert not made.tls.asks_for_client_certificate


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"brokerServicePortTls": "1"}, "brokerServicePortTls is set: tlsCertificateFilePath and"),
        ({"webServicePortTls": "1", **FILES, "tlsKeyFilePath": ""}, "webServicePortTls is set: "),
        (
            {**PORT, "tlsEnabledWithKeyStore": "true"},
            "tlsEnabledWithKeyStore=true: key stores (JKS",
        ),
        ({**PORT, "sslFactoryPlugin": "com.Mine"}, "sslFactoryPlugin is set: "),
        ({**PORT, "tlsRequireTrustedClientCertOnConnect": "true"}, "tlsRequireTrusted"),
        ({**PORT, "tlsProtocols": "TLSv1.1"}, "tlsProtocols='TLSv1.1': expected TLSv1.2 or"),
        ({**PORT, "tlsCiphers": "ROT13"}, "tlsCiphers='ROT13': OpenSSL offers no such cipher"),
        (
            {**PORT, "tlsProtocols": "TLSv1.3", "tlsCiphers": "AES128-SHA"},
            "tlsCiphers names no cipher of TLSv1.3",
        ),
        ({"tlsEnabled": "true"}, "tlsEnabled=true: no port speaks TLS; set brokerServicePortTls"),
        ({"brokerServicePort": ""}, "brokerServicePort=Optional.empty: this port cannot be"),
        ({**PORT, "floodgateTlsHandshakeTimeoutMs": "0"}, "floodgateTlsHandshakeTimeoutMs='0'"),
    ],
)
def test_an_unusable_tls_setting_of_a_port_is_refused_with_the_remedy(keys, sentence) -> None:
    assert problem(BrokerConfig, **keys).startswith(sentence)


def test_a_warning_reports_that_ciphers_of_tls_1_3_cannot_be_restricted() -> None:
    made = broker(tlsCiphers="TLS_AES_256_GCM_SHA384")
    (notice,) = [one for one in made.notices if one.sentence.startswith("tlsCiphers")]
    assert notice.level == "warning"
    assert "TLS_AES_128_GCM_SHA256, TLS_CHACHA20_POLY1305_SHA256 may be used too" in notice.sentence


def test_a_proxy_connects_to_brokers_by_tls_with_its_own_keys() -> None:
    made = proxy(
        brokerServiceURL="pulsar://other:1",
        brokerClientTrustCertsFilePath="/t.pem",
        brokerClientCertificateFilePath="/c.pem",
        brokerClientKeyFilePath="/k.pem",
        tlsHostnameVerificationEnabled="true",
    )
    assert made.broker_addresses == (("b", 6651), ("c", 6651))
    assert made.broker_web_service_url == "https://b:8443"
    assert made.broker_tls is not None
    assert made.broker_tls.files.named() == {
        "brokerClientCertificateFilePath": "/c.pem",
        "brokerClientKeyFilePath": "/k.pem",
        "brokerClientTrustCertsFilePath": "/t.pem",
    }
    assert made.broker_tls.verifies_host_name
    assert not proxy().broker_tls.verifies_host_name  # type: ignore[union-attr]
    assert (made.tls, made.web_tls) == (None, None)


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"brokerServiceURL": "pulsar+ssl://b"}, "brokerServiceURL='pulsar+ssl://b': an address"),
        ({**PROXY, "brokerServiceURLTLS": ""}, "brokerServiceURLTLS is missing"),
        ({**PROXY, "brokerServiceURLTLS": "pulsar://b:1"}, "brokerServiceURLTLS='pulsar://b:1'"),
        ({**PROXY, "brokerWebServiceURLTLS": "http://b:1"}, "brokerWebServiceURLTLS='http://b:1'"),
        (
            {**PROXY, "brokerWebServiceURLTLS": "", "brokerWebServiceURL": "http://b:1"},
            "brokerWebServiceURL is set with tlsEnabledWithBroker=true",
        ),
        (
            {**PROXY, "brokerClientKeyFilePath": "/k"},
            "brokerClientKeyFilePath is set: brokerClientC",
        ),
        ({**PROXY, "brokerClientCertificateFilePath": "/c"}, "brokerClientCertificateFilePath is"),
        (
            {**PROXY, "brokerClientTlsEnabledWithKeyStore": "true"},
            "brokerClientTlsEnabledWithKeyStore=true: key stores",
        ),
        ({**PROXY, "brokerClientSslFactoryPlugin": "X"}, "brokerClientSslFactoryPlugin is set"),
    ],
)
def test_an_unusable_tls_setting_of_a_proxys_broker_connections_is_refused(keys, sentence) -> None:
    assert problem(ProxyConfig, **keys).startswith(sentence)
