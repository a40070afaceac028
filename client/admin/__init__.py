"""``floodgate-admin`` and the library it uses: a client of Pulsar's admin REST API."""
