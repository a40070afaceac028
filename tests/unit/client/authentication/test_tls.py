"""The rules and certificates of connections by TLS."""

import ssl
from pathlib import Path

import pytest
import trustme

from client.authentication.tls import AuthenticationTLS, tls_context
from client.exceptions import InvalidConfiguration


def test_the_auth_method_is_tls_and_the_auth_data_is_empty() -> None:
    authentication = AuthenticationTLS("certificate.pem", "key.pem")
    assert (authentication.method_name, authentication.auth_data()) == ("tls", b"")


def test_a_path_that_is_no_str_is_refused() -> None:
    with pytest.raises(InvalidConfiguration, match="private_key_path is a str, not NoneType"):
        AuthenticationTLS("certificate.pem", None)


@pytest.mark.parametrize(
    ("insecure", "hostname", "mode", "checked"),
    [
        (False, False, ssl.CERT_REQUIRED, False),
        (False, True, ssl.CERT_REQUIRED, True),
        (True, False, ssl.CERT_NONE, False),
        (True, True, ssl.CERT_NONE, False),
    ],
)
def test_insecure_and_hostname_options_decide_the_certificate_checks(
    insecure, hostname, mode, checked
) -> None:
    context = tls_context(None, None, allow_insecure=insecure, validate_hostname=hostname)
    assert (context.verify_mode, context.check_hostname) == (mode, checked)


def test_without_a_trust_file_the_authorities_of_certifi_are_trusted() -> None:
    context = tls_context(None, None, allow_insecure=False, validate_hostname=False)
    assert context.get_ca_certs()


def test_with_a_trust_file_only_its_authorities_are_trusted(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(str(file))
    context = tls_context(str(file), None, allow_insecure=False, validate_hostname=False)
    assert len(context.get_ca_certs()) == 1


def test_an_unusable_trust_or_certificate_file_is_refused_with_its_path(tmp_path: Path) -> None:
    file = tmp_path / "empty.pem"
    file.write_text("nothing")
    rules = {"allow_insecure": False, "validate_hostname": False}
    for path in ("/not/there", str(file)):
        with pytest.raises(InvalidConfiguration, match=f"tls_trust_certs_file_path '{path}'"):
            tls_context(path, None, **rules)
        with pytest.raises(InvalidConfiguration, match=f"the certificate '{path}' with the key"):
            tls_context(None, (path, path), **rules)
