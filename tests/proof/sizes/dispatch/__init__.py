"""Cases of dispatch: large numbers of entries delayed, acknowledged, redelivered, blocked or left."""
