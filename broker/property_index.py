"""The property index under the short name that configurations give it.

`pulsarResourcesExtendedClassName=broker.property_index:PropertyIndex`: names that users
have written stay, wherever the class stands.
"""

from broker.plugins.property_index import PropertyIndex

__all__ = ["PropertyIndex"]
