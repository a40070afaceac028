"""Order in which waiting requests get permits: first come first served, or fair among owners."""
