"""What a load's clients do, such as list or publish; each behaviour is a module."""
