"""Suite for two clients with the official asyncio API, parametrized by import.

The suite runs against a new Floodgate broker, or against the cluster of PULSAR_SERVICE_URL and
PULSAR_WEB_URL, such as a real Pulsar.
"""
