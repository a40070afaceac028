"""Authentication of clients and proxies: the code that broker and proxy share."""
