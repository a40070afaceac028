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


def test_every_name_of_java_is_openssls_own() -> None:
    assert len(NAMES) == 79
    assert {java: openssl_name(java) for java, _ in NAMES} == dict(NAMES)


@pytest.mark.parametrize("name", [JAVA, OPENSSL])
def test_either_spelling_means_the_same(name: str) -> None:
    # And no suite of TLS 1.3 was named
    assert chosen((name,)) == CipherChoice(OPENSSL, tls12=True, tls13=False)


def test_no_name_leaves_all_and_names_of_tls_1_3_switch_it_on() -> None:
    assert chosen(()) == CipherChoice("", tls12=True, tls13=True)
    assert chosen(("TLS_AES_128_GCM_SHA256",)) == CipherChoice("", tls12=False, tls13=True)
    assert chosen(("TLS_AES_128_GCM_SHA256", OPENSSL)) == CipherChoice(OPENSSL)


@pytest.mark.parametrize(
    "name",
    ["TLS_RSA_WITH_NONSENSE", "ROT13", "TLS_AES_128_CCM_SHA256", "ALL:!aNULL", "!MD5", "-", "a b"],
)
def test_what_openssl_does_not_offer_is_named_though_others_are_known(name: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(name)}$"):
        chosen((OPENSSL, name))
