"""The streaming client for OpenAI-compatible servers, and the engine that attaches to one."""
