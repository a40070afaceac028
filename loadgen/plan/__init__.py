"""The plan of a load as values and pure functions: what each client does, and when."""
