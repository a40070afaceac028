"""Discovery on the wire: scripts, a broker that follows them, and the replay of what it saw."""
