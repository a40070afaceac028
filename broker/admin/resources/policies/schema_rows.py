"""Policies about schemas, encryption, and names of subscriptions."""

from __future__ import annotations

from broker.admin.resources.policies import checks
from broker.admin.resources.policies.row import Empty, Null, Place, PolicyRow
from broker.admin.resources.policies.values import (
    boolean,
    one_of,
)
from broker.authorization.grants import MODE_KEY, NO_MODE, PREFIX
from broker.authorization.operations import PolicyName
from broker.policies.documents import UNDEFINED

STRATEGIES = (
    "ALWAYS_INCOMPATIBLE",
    "ALWAYS_COMPATIBLE",
    "BACKWARD",
    "FORWARD",
    "FULL",
    "BACKWARD_TRANSITIVE",
    "FORWARD_TRANSITIVE",
    "FULL_TRANSITIVE",
)
_OLD_STRATEGIES = (
    "AutoUpdateDisabled",
    "Backward",
    "Forward",
    "Full",
    "AlwaysCompatible",
    "BackwardTransitive",
    "ForwardTransitive",
    "FullTransitive",
)
SCHEMAS = (
    PolicyRow(
        "encryption_required",
        PolicyName.ENCRYPTION,
        boolean,
        Place("encryptionRequired", null=Null.VALUE, unset=False, removable=False),
    ),
    PolicyRow(
        MODE_KEY,
        PolicyName.SUBSCRIPTION_AUTH_MODE,
        one_of((NO_MODE, PREFIX), NO_MODE),
        Place("subscriptionAuthMode", null=Null.VALUE, unset=NO_MODE, removable=False),
    ),
    PolicyRow(
        "schema_compatibility_strategy",
        PolicyName.SCHEMA_COMPATIBILITY_STRATEGY,
        one_of((UNDEFINED, *STRATEGIES), UNDEFINED),
        Place(
            "schemaCompatibilityStrategy",
            verb="PUT",
            null=Null.VALUE,
            unset=UNDEFINED,
            removable=False,
        ),
        Place("schemaCompatibilityStrategy", verb="PUT"),
        checks.undefined_removes,
        lambda own, _: own.schema_strategy,
    ),
    PolicyRow(
        "schema_auto_update_compatibility_strategy",
        PolicyName.SCHEMA_COMPATIBILITY_STRATEGY,
        one_of(_OLD_STRATEGIES),
        Place(
            "schemaAutoUpdateCompatibilityStrategy",
            verb="PUT",
            unset=Empty.NO_CONTENT,
            removable=False,
        ),
    ),
    PolicyRow(
        "schema_validation_enforced",
        PolicyName.SCHEMA_COMPATIBILITY_STRATEGY,
        boolean,
        Place("schemaValidationEnforced", null=Null.VALUE, unset=False, removable=False),
        Place("schemaValidationEnforced", null=Null.VALUE, unset=False, removable=False),
        default=lambda own, _: own.schema_validation_enforced,
    ),
    PolicyRow(
        "is_allow_auto_update_schema",
        PolicyName.SCHEMA_COMPATIBILITY_STRATEGY,
        boolean,
        Place("isAllowAutoUpdateSchema", null=Null.VALUE, unset=True, removable=False),
    ),
)
