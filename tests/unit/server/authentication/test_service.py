"""The service: choice of provider, and anonymous roles."""

import base64

import pytest

from server.authentication.providers import AuthenticationError, Principal
from server.authentication.service import (
    METHOD_HEADER,
    AuthenticationService,
    CertificateProvider,
    open_service,
)
from server.configuration.authentication import AuthenticationSettings
from tests.support.clocks.manual_clock import ManualClock


class Stand:
    """A provider whose credentials are the role."""

    def __init__(self, method: str, scheme: str) -> None:
        self.method, self.name = method, f"Stand{method}"
        self._scheme = scheme

    def authenticate(self, data, certificate):
        if data == b"wrong":
            raise AuthenticationError(f"no {self.method}")
        return Principal(data.decode(), self.method)

    def http_data(self, headers):
        given = headers.get("Authorization", "")
        if not given.startswith(self._scheme):
            raise AuthenticationError(f"no header of {self.method}")
        return base64.b64decode(given.removeprefix(self._scheme))


def service(**more) -> AuthenticationService:
    return AuthenticationService([Stand("one", "One "), Stand("two", "Two ")], **more)


def bearing(scheme: str, role: str, **headers: str) -> dict[str, str]:
    return {"Authorization": f"{scheme} {base64.b64encode(role.encode()).decode()}", **headers}


def test_an_authentication_method_selects_its_provider() -> None:
    assert service().authenticate("two", b"ann", None) == Principal("ann", "two")


def test_missing_credentials_are_anonymous_only_with_an_anonymous_role() -> None:
    with pytest.raises(AuthenticationError, match="No anonymous role"):
        service().authenticate("none", b"", None)
    found = service(anonymous_role="any").authenticate("none", b"", None)
    assert (found.role, found.method) == ("any", "none")


def test_wrong_credentials_are_refused_despite_an_anonymous_role() -> None:
    with pytest.raises(AuthenticationError, match="no one"):
        service(anonymous_role="any").authenticate("one", b"wrong", None)


def test_a_request_is_authenticated_by_any_provider() -> None:
    assert service().authenticate_request(bearing("Two", "ann"), None) == Principal("ann", "two")


def test_a_request_naming_its_method_is_authenticated_by_that_provider_only() -> None:
    headers = bearing("Two", "ann", **{METHOD_HEADER: "one"})
    with pytest.raises(AuthenticationError, match="no header of one"):
        service(anonymous_role="any").authenticate_request(headers, None)


def test_an_unknown_method_of_a_request_is_refused() -> None:
    with pytest.raises(AuthenticationError, match=r"\[three\]"):
        service(anonymous_role="any").authenticate_request({METHOD_HEADER: "three"}, None)


def test_a_strict_service_requires_the_method_of_a_request() -> None:
    with pytest.raises(AuthenticationError, match="method missing"):
        service(strict=True, anonymous_role="any").authenticate_request(bearing("One", "a"), None)


def test_a_request_with_wrong_credentials_is_anonymous_with_an_anonymous_role() -> None:
    headers = bearing("One", "wrong")
    assert service(anonymous_role="any").authenticate_request(headers, None).role == "any"
    with pytest.raises(AuthenticationError, match="no one"):
        service().authenticate_request(headers, None)


def test_the_common_name_of_a_certificate_is_the_role() -> None:
    subject = ((("countryName", "CH"),), (("commonName", "ann"),), (("commonName", "bob"),))
    checks = CertificateProvider()
    assert checks.authenticate(b"", {"subject": subject}) == Principal("ann", "tls")
    for other in (None, {}, {"subject": ((("countryName", "CH"),),)}):
        with pytest.raises(AuthenticationError):
            checks.authenticate(b"", other)


def test_without_settings_there_is_no_authentication_service() -> None:
    opened = open_service(AuthenticationSettings(("tls",)), ManualClock())
    assert open_service(None, ManualClock()) is None
    assert opened is not None
    assert opened.authenticate("tls", b"", {"subject": ((("commonName", "a"),),)}).role == "a"


@pytest.mark.parametrize(("method", "shown"), [("kerberos", "kerberos"), ("x" * 21, "(no method)")])
def test_an_unsupported_method_is_named_unless_too_long(method: str, shown: str) -> None:
    with pytest.raises(AuthenticationError) as refused:
        service().authenticate_request({"X-Pulsar-Auth-Method-Name": method}, None)
    assert refused.value.reason == f"Unsupported authentication method: [{shown}]."
