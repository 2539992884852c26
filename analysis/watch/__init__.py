"""Looks on while a run goes on: reads its folder, and never writes there."""
