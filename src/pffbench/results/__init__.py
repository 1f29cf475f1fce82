"""What a run leaves behind: samples, log, provenance and the summary."""
