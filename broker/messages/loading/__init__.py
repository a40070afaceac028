"""The loaded topics of a broker: how they are found, made, opened, closed and deleted."""
