"""A missing package of an extra is named with its remedy."""

import pytest

from limiter.extras import SERVERS, MissingExtraError, extra


def test_the_sentence_names_the_package_and_the_extra() -> None:
    with (
        pytest.raises(
            MissingExtraError,
            match=r"^the package no_such_package is missing: "
            r"pip install 'pulsar-floodgate\[fast\]'$",
        ),
        extra("fast", SERVERS),
    ):
        import no_such_package  # type: ignore[import-not-found] # noqa: F401


def test_a_package_that_is_too_old_is_to_be_upgraded() -> None:
    remedy = r"^--import: the package email is too old: pip install --upgrade '"
    with (
        pytest.raises(MissingExtraError, match=remedy),
        extra("admin", needed_by="--import"),
    ):
        import email.no_such_part  # type: ignore[import-not-found] # noqa: F401
