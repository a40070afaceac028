"""Reading of commands: parsing, fields of unparsed commands, and size bounds."""
