"""A real engine beside the simulated one, on the same schedules."""
