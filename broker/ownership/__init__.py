"""Which broker of a cluster serves each bundle of topics."""
