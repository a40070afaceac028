"""Service times of a broker that runs: small loads, and the times in their rows."""
