"""The targets: each takes bytes, and says which errors are the answer to bad ones."""
