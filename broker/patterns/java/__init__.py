"""The syntax of java.util.regex, parsed and translated for Python's engine."""
