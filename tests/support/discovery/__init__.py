"""Discovery on the wire: scripts, a scripted broker, and the replay of its records."""
