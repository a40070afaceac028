"""The plan of a load: what each client does and when, as values and pure functions."""
