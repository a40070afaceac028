"""What a consumer holds of one entry, in one number: the messages left and the hash of the key.

A tuple each would cost three times the memory, and the garbage collector's time.
"""

from __future__ import annotations

HASH_BITS = 17
"""Above so many bits stand the messages left."""
HASHES = (1 << HASH_BITS) - 1
"""These bits have the hash; 0 for none."""
