"""The config group `arrivals`: what the offered load looks like over time, one kind a file."""
