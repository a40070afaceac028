"""Cipher suites by Java's names and OpenSSL's."""

import re

import pytest

from server.tls.settings import CipherChoice, chosen, openssl_name
from tests.support.key_files import DATA

NAMES = [
    line.split()
    for line in (DATA / "cipher-names.txt").read_text().splitlines()
    if not line.startswith("#")
]
JAVA, OPENSSL = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"


def test_every_java_cipher_name_maps_to_its_openssl_name() -> None:
    assert len(NAMES) == 79
    assert {java: openssl_name(java) for java, _ in NAMES} == dict(NAMES)


@pytest.mark.parametrize("name", [JAVA, OPENSSL])
def test_both_spellings_of_a_cipher_select_the_same_cipher(name: str) -> None:
    # And no suite of TLS 1.3 was named
    assert chosen((name,)) == CipherChoice(OPENSSL, tls12=True, tls13=False)


def test_without_cipher_names_all_are_allowed_and_a_tls_1_3_name_selects_tls_1_3() -> None:
    assert chosen(()) == CipherChoice("", tls12=True, tls13=True)
    assert chosen(("TLS_AES_128_GCM_SHA256",)) == CipherChoice("", tls12=False, tls13=True)
    assert chosen(("TLS_AES_128_GCM_SHA256", OPENSSL)) == CipherChoice(OPENSSL)


@pytest.mark.parametrize(
    "name",
    ["TLS_RSA_WITH_NONSENSE", "ROT13", "TLS_AES_128_CCM_SHA256", "ALL:!aNULL", "!MD5", "-", "a b"],
)
def test_a_cipher_not_offered_by_openssl_is_refused_by_name(name: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(name)}$"):
        chosen((OPENSSL, name))
