"""Producers, which track each message from the application's call to the broker's receipt."""
