"""Copies finished runs into a local MLflow store, so that sweeps can be browsed there."""
