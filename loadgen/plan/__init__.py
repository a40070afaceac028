"""The plan of a load: which client does what, when. Values and pure functions."""
