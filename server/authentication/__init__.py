"""Authentication of peers by credentials of a method; shared by broker and proxy."""
