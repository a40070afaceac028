"""Regex consumers of the official client attach through the proxy, are killed, and reconnect."""

from pathlib import Path

import pytest

from tests.official.clients import ClientMissingError, python_client
from tests.proof.consumers.regex import prove
from tests.proof.result import ProofOptions

pytestmark = [pytest.mark.official, pytest.mark.timeout(300)]


def test_all_attach_cold_and_after_a_kill(tmp_path: Path) -> None:
    try:
        python_client()
    except ClientMissingError as missing:
        pytest.skip(str(missing))
    result = prove(ProofOptions(tmp_path, quick=True))
    assert [check.sentence for check in result.checks if not check.passed] == []
    assert [result.figures[start]["attachments"] for start in ("cold", "restart")] == [500, 500]
