"""loadgen.access: the credentials of a load, named by options and variables."""

import asyncio
import os
import tempfile
from pathlib import Path

import pytest

import proto.PulsarApi_pb2 as pb
from client.authentication.authentication import AuthenticationToken
from loadgen.access import WebPages, access_taken, name_access, own_credentials
from loadgen.engine.frames import auth_frame, connect_frame
from loadgen.errors import UsageError
from tests.support.peers.stand_in_admin import Given, stand_in_admin


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", dict(os.environ))


def test_credential_options_are_exported_to_started_processes(tmp_path: Path) -> None:
    os.environ["FLOODGATE_AUTH_PLUGIN"] = "basic"
    (tmp_path / "token").write_text("a.b.c")
    name_access(None, f"file:{tmp_path / 'token'}", None)
    found = own_credentials()
    assert found is not None
    assert found.auth_data() == b"a.b.c"
    assert os.environ["FLOODGATE_AUTH_PARAMS"] == f"file:{tmp_path / 'token'}"


def test_a_literal_secret_is_refused_without_being_shown() -> None:
    with pytest.raises(UsageError, match="--auth-params file:///path") as refused:
        name_access(None, "planted.secret", None)
    assert "planted" not in str(refused.value)


def test_clients_send_a_token_at_connect_and_again_when_challenged() -> None:
    token = AuthenticationToken("a.b.c")
    command = pb.BaseCommand.FromString(connect_frame(authentication=token)[8:])
    again = pb.BaseCommand.FromString(auth_frame(token)[8:]).authResponse.response
    assert (command.connect.auth_method_name, command.connect.auth_data) == ("token", b"a.b.c")
    assert command.connect.feature_flags.supports_auth_refresh
    assert (again.auth_method_name, again.auth_data) == ("token", b"a.b.c")


async def test_web_pages_are_read_with_the_token_and_redirects_without_the_token(tmp_path) -> None:
    (tmp_path / "token").write_text("a.b.c")
    name_access(None, f"file:{tmp_path / 'token'}", None)
    async with stand_in_admin() as other, stand_in_admin() as server:
        server.answers["GET /metrics/"] = Given(status=302, location=f"{other.url}/elsewhere")
        other.answers["GET /elsewhere"] = Given((b"page",))
        page = await asyncio.to_thread(WebPages().read, f"{server.url}/metrics/", 5, 100)
    assert page == "page"
    assert [each.asked[0].authorization for each in (server, other)] == ["Bearer a.b.c", ""]


def test_a_task_uses_passed_credentials_only_within_its_block_and_leaves_no_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with access_taken({"plugin": "", "secret": "header.claims.signature"}):
        shown = own_credentials()
        assert shown is not None
        # Then, at every reading
        assert [shown.auth_data() for _ in range(2)] == [b"header.claims.signature"] * 2
        assert not any(tmp_path.iterdir()) or not hasattr(os, "memfd_create")
    assert own_credentials() is None
