"""Pipes: byte copies between a client and a broker chosen by the client."""
