"""Credentials that tests show, and what a real broker said to them."""
