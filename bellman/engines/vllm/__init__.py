"""A vLLM server as the experiment's engine: its process, its model folder, its configuration."""
