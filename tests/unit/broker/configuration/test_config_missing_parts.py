"""Parts of Pulsar that are not implemented."""

import pytest

from broker.configuration.config import MISSING_PARTS, BrokerConfig

SWITCHED_ON = {"managedLedgerOffloadDriver": "aws-s3", "entryFilterNames": "a,b"}
KEYS = ("transactionCoordinatorEnabled", "functionsWorkerEnabled", *SWITCHED_ON)


@pytest.mark.parametrize("key", KEYS)
def test_an_enabled_part_that_is_not_implemented_causes_its_own_warning(key: str) -> None:
    value = SWITCHED_ON.get(key, "true")
    notices = BrokerConfig.from_properties({key: value}).notices
    assert [(one.level, one.sentence) for one in notices] == [
        ("warning", f"{key}={value}: {MISSING_PARTS[key]}")
    ]


def test_disabled_parts_cause_no_warning() -> None:
    off = {key: "false" if key.endswith("Enabled") else "" for key in KEYS}
    assert BrokerConfig.from_properties(off).notices == ()
