"""The differences between the profiles in how admin requests are answered."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AdminRules:
    """The differences between the profiles; each is as recorded of a real broker, or mended.

    Attributes:
        fails_as_upstream: 500 where upstream's server fails at what a client sent; otherwise the
            status of any other refusal.
        returns_accepted_type: JSON is answered with the parameters that the client accepts.
        skips_unreadable_properties: Parts of ``properties`` that are no ``key=value`` are left out;
            otherwise refused.
        unknown_bundle_is_empty: A listing of a bundle that does not exist is empty; otherwise
            refused.
        missing_namespace_has_bundle: Topics of a missing namespace lie in its only bundle.
        forgets_non_persistent: A namespace of non-persistent topics only is deleted with them.
        creates_used_partitions: A partition of a non-persistent topic is created by its first use.
        accepts_no_property: A request without any property succeeds and changes nothing.
    """

    fails_as_upstream: bool
    returns_accepted_type: bool
    skips_unreadable_properties: bool
    unknown_bundle_is_empty: bool
    missing_namespace_has_bundle: bool
    forgets_non_persistent: bool
    creates_used_partitions: bool
    accepts_no_property: bool


PULSAR_ADMIN = AdminRules(*[True] * 8)
FLOODGATE_ADMIN = AdminRules(*[False] * 8)
