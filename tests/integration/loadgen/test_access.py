"""The load generator's clients at a broker with TLS and tokens."""

import os

import pytest

from loadgen.access import name_access
from loadgen.errors import LoadgenError
from loadgen.places.experiment import check_reachable
from proto.version import SERVER_VERSION
from tests.support.authentication.credentials import properties, token
from tests.support.certificates import PemFiles
from tests.support.processes.tls_servers import tls_broker


async def test_clients_connect_over_tls_with_the_configured_token(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(os, "environ", dict(os.environ))
    pem = PemFiles(tmp_path / "pem")
    (tmp_path / "ann.jwt").write_bytes(token(sub="ann"))
    async with tls_broker(pem, **properties(tmp_path)) as broker:
        url = broker.urls.service_tls
        # First no trusted certificate, then no known role
        with pytest.raises(LoadgenError, match="CERTIFICATE_VERIFY_FAILED"):
            await check_reachable(url)
        name_access(None, None, pem.trust)
        with pytest.raises(LoadgenError, match="loadgen --auth-params"):
            await check_reachable(url)
        name_access(None, f"file:{tmp_path / 'ann.jwt'}", None)
        assert await check_reachable(url) == SERVER_VERSION
