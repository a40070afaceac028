"""Store URLs: syntax and display."""

import pytest

from broker.stores.store_url import usable_store_url, without_password


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:p@h:1/d", "postgresql://u:***@h:1/d"),
        ("postgresql://u:p@ss@h/d", "postgresql://u:***@h/d"),
        ("postgresql://u:p:q@h/d", "postgresql://u:***@h/d"),
        ("postgresql://u:p/q?#@h/d", "postgresql://u:***@h/d"),
        ("postgresql://:p@h/d", "postgresql://:***@h/d"),
        ("postgresql://u@h/d?password=p&x=1", "postgresql://u@h/d?password=***&x=1"),
        ("postgresql://h/d?x=1&PASSWORD=p", "postgresql://h/d?x=1&PASSWORD=***"),
        ("postgresql://h/d?sslpassword=p", "postgresql://h/d?sslpassword=***"),
        ("postgresql://u@h:1/d", "postgresql://u@h:1/d"),
        ("sqlite:///a/b:c@d.db", "sqlite:///a/b:c@d.db"),
        ("memory:local", "memory:local"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    assert without_password(url) == shown


@pytest.mark.parametrize(
    ("url", "usable"),
    [
        ("postgresql://u:p@h:1/d", True),
        ("postgres://h", True),
        ("postgresql:///d?host=/tmp", True),
        ("postgresql://h:99999/d", False),
        ("postgresql://[h/d", False),
        ("postgresql://", False),
        ("postgresql:h", False),
        ("mysql://h/d", False),
        ("sqlite:///x", True),
        ("memory:local", True),
    ],
)
def test_a_store_url_is_usable_only_with_a_known_scheme_and_valid_parts(
    url: str, usable: bool
) -> None:
    assert usable_store_url(url) is usable
