"""Dialogues about messages: producers and consumers on two connections, played and compared."""
