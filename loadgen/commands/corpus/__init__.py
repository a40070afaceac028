"""Commands about topics: made, read from a cluster, loaded into one."""
