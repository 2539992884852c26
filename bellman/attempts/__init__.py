"""What a client does when it is refused, and the record of each time that a request was sent."""
