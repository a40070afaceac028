"""A missing package of an extra is named with its remedy."""

import pytest

from limiter.extras import SERVERS, MissingExtraError, extra


def test_a_missing_package_is_named_with_its_extra() -> None:
    with (
        pytest.raises(
            MissingExtraError,
            match=r"^the package no_such_package is missing: "
            r"pip install 'pulsar-floodgate\[fast\]'$",
        ),
        extra("fast", SERVERS),
    ):
        import no_such_package  # type: ignore[import-not-found] # noqa: F401


def test_an_outdated_package_is_reported_with_the_upgrade_command() -> None:
    remedy = r"^--import: the package email is too old: pip install --upgrade '"
    with (
        pytest.raises(MissingExtraError, match=remedy),
        extra("admin", needed_by="--import"),
    ):
        import email.no_such_part  # type: ignore[import-not-found] # noqa: F401
