"""The broker: topics, stores and listings, served by binary protocol and admin REST."""
