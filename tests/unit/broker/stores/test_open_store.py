import builtins

import pytest

from broker.stores.changes import StoreError
from broker.stores.open_store import store_for_url


@pytest.mark.parametrize(
    ("missing", "expected"), [("asyncpg", StoreError), ("other", ModuleNotFoundError)]
)
def test_postgresql_without_its_driver_is_refused_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, missing: str, expected: type[Exception]
) -> None:
    def importing(name: str, *rest: object) -> object:
        if name == "broker.stores.postgresql.store":
            raise ModuleNotFoundError(f"No module named {missing}", name=missing)
        return imported(name, *rest)

    imported = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", importing)
    with pytest.raises(expected, match=missing) as refused:
        store_for_url("postgresql://me:secret@host/db", 1)
    assert "secret" not in str(refused.value)
    assert ('pip install "pulsar-floodgate[postgresql]"' in str(refused.value)) is (
        missing == "asyncpg"
    )
