"""Parts of Pulsar that are not implemented."""

import pytest

from broker.configuration.config import MISSING_PARTS, BrokerConfig

SWITCHED_ON = {"managedLedgerOffloadDriver": "aws-s3", "entryFilterNames": "a,b"}
KEYS = ("transactionCoordinatorEnabled", "functionsWorkerEnabled", *SWITCHED_ON)


@pytest.mark.parametrize("key", KEYS)
def test_a_part_that_is_switched_on_and_not_here_is_told_in_a_warning_of_its_own(key: str) -> None:
    value = SWITCHED_ON.get(key, "true")
    notices = BrokerConfig.from_properties({key: value}).notices
    assert [(one.level, one.sentence) for one in notices] == [
        ("warning", f"{key}={value}: {MISSING_PARTS[key]}")
    ]


def test_nothing_is_told_of_parts_that_are_off() -> None:
    off = {key: "false" if key.endswith("Enabled") else "" for key in KEYS}
    assert BrokerConfig.from_properties(off).notices == ()
