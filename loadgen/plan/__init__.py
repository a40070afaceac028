"""The plan of a load: the clients' actions and moments. Values and pure functions."""
