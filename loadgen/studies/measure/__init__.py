"""Service times of a broker that runs: small loads against it, and what their rows say."""
