"""Authentication: who a peer is, by credentials of a method; the same for broker and proxy."""
