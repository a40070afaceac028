"""A fault's document: the schema describes exactly the accepted documents."""

import re

import pytest

from server.documents import DocumentError
from server.faults.fault import Where

PATTERNS = {
    name: description.get("pattern", "")
    for name, description in Where.schema()["properties"].items()
}


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("topic", ["persistent://a/b/c", "non-persistent://*", "*", "*/orders", "per*", "non-*"]),
        ("topic", ["orders", "orders*", "a*", "persistentx*", "persistent:/x", "non-persist"]),
        ("namespace", ["a/b", "a*", "*", "a"]),
        ("connection", ["127.0.0.1:*", "*", "[::1]:1", "localhost"]),
    ],
)
def test_the_schema_accepts_exactly_the_accepted_texts(name: str, texts: list[str]) -> None:
    for text in texts:
        assert bool(re.search(PATTERNS[name], text)) is is_taken(name, text), text


def is_taken(name: str, text: str) -> bool:
    try:
        Where.of({name: text})
    except DocumentError:
        return False
    return True
