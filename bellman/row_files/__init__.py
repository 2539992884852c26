"""Tables that a user brings: rows of named columns from CSV, JSON Lines and parquet files."""
