"""The syntax of java.util.regex, read and written anew for Python's engine."""
