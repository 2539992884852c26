"""The config group `load_model`: who decides when the next request comes, one model a file."""
