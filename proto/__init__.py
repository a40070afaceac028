"""Wire protocol: frames, commands, names and topic lists. Bytes in, values out.

Only proto.transport does I/O.
"""
