"""Wire: frames, commands, names and topic lists. Bytes in, values out.

One module does I/O: proto.transport.connection.
"""
