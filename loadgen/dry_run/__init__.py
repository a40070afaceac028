"""The needs of a run, reckoned and held against this machine before anything is touched."""
