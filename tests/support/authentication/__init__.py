"""Test credentials, and a real broker's recorded answers."""
