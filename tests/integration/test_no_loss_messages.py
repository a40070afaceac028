"""A short proof that SIGKILLs lose no message."""

from pathlib import Path

import pytest

from tests.proof.result import ProofOptions
from tests.proof.soaks.no_loss_messages import prove


@pytest.mark.proof
@pytest.mark.timeout(300)
def test_sigkills_lose_no_message(tmp_path: Path) -> None:
    result = prove(ProofOptions(tmp_path, quick=True, soak_seconds=20.0))
    assert result.passed, [check.sentence for check in result.checks if not check.passed]
