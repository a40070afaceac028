"""Verbs about messages and subscriptions: of ``floodgate-admin topics``."""
