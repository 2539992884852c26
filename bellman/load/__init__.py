"""Load: when which request is sent, how it is sent, and whether it left on time."""
