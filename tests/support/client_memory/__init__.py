"""Consumers whose broker and application a test moves by hand."""
