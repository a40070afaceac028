"""The order in which waiting requests are served: first come first served, or fair by owner."""
