"""Errors at each step of attaching, and what clients make of them."""
