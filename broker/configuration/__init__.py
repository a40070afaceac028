"""Configuration of the broker: keys of the file, and changes at run time."""
