"""One suite for two clients: the official asyncio API, used by way of either import.

It runs against a Floodgate broker of its own, or against the cluster that PULSAR_SERVICE_URL and
PULSAR_WEB_URL name, such as a real Pulsar.
"""
