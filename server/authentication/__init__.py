"""Authentication of clients and proxies, shared by broker and proxy."""
