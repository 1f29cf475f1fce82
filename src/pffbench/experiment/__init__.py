"""What to run: the schema of an experiment, its expansion into cases, and what they cost."""
