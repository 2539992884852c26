"""The capacity experiment, from its records: points, the highest load under the SLO, tables."""
