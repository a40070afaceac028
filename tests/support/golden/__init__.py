"""Dialogues recorded from a real broker, played to a target and compared."""
