"""Cases of dispatch: many entries delayed, acknowledged, redelivered, blocked or left."""
