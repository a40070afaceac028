"""Topics of a load: made synthetically or read from files, and loaded into a server."""
