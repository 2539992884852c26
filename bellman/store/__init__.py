"""What the gateways of one server share, and where: memory, Redis, DynamoDB."""
