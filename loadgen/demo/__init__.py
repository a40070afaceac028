"""The demo: a storm and a stuck peer, each with and without limits."""
