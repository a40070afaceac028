"""Choice of the classes for topic properties: Arrow columns if Arrow is installed, else dicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.columns import HAS_COLUMNS

# For type checkers both are columns: the other classes have the same methods.
if TYPE_CHECKING or HAS_COLUMNS:
    from broker.stores.property_rows import PropertyRows
    from broker.stores.snapshots.namespace_properties import NamespaceProperties
else:
    from broker.stores.plain_properties import PlainProperties as NamespaceProperties
    from broker.stores.plain_properties import PlainRows as PropertyRows

__all__ = ["NamespaceProperties", "PropertyRows"]
