"""Client behaviours for loadgen that show how to add one outside of loadgen."""
