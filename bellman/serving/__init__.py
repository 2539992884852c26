"""The server's half of the loop: an ASGI middleware that senses, runs the law and signals."""
