"""Running an experiment: from the command line to a verdict, on all ranks."""
