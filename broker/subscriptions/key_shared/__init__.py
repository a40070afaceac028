"""Key_Shared: every key has one consumer, and its messages arrive in order."""
