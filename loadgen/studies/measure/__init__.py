"""Service times of a running broker, from small loads."""
