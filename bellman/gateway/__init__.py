"""A proxy that gives any OpenAI-compatible server the congestion signal."""
