"""Cases of dispatch: very much is delayed, acknowledged, given back, blocked or left."""
