"""Servers with less memory than a storm asks for."""
