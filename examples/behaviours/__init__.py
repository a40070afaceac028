"""Client behaviours for loadgen that are not part of loadgen itself."""
