"""A server with unusable parts gives the reason in one sentence."""

from dataclasses import replace
from typing import Any

import pytest

from broker.configuration.config import BrokerConfig
from limiter.admission.policy import Admission
from limiter.admission.rules import AdmissionRules
from limiter.admission.view import BudgetView
from server.errors import StartError
from server.parts import ServerParts
from tests.support.clocks.manual_clock import ManualClock


class NotMade(Admission):
    def __init__(self, view: BudgetView) -> None:
        raise ValueError("no figures")


def test_a_policy_that_cannot_be_constructed_stops_the_start() -> None:
    config = replace(BrokerConfig.from_properties({}), admission=AdmissionRules(NotMade))
    listen = None
    with pytest.raises(StartError) as caught:
        ServerParts[Any](config, 1, 1.0, ManualClock(), listen)  # type: ignore[arg-type]
    assert str(caught.value) == (
        f"floodgateAdmissionPolicy={__name__}:NotMade: it cannot be made: ValueError: no figures"
    )
