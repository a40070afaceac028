"""The proof that SIGKILLs lose no message, for a short time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.proof.result import ProofOptions
from tests.proof.soaks.no_loss_messages import prove

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.proof
@pytest.mark.timeout(300)
def test_kills_lose_no_message(tmp_path: Path) -> None:
    # Given, When
    result = prove(ProofOptions(tmp_path, quick=True, soak_seconds=20.0))
    # Then
    assert result.passed, [check.sentence for check in result.checks if not check.passed]
