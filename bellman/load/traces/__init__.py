"""Recorded and published workloads: reading them, and replaying them at another rate."""
