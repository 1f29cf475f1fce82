"""One small file per library behind one interface; a backend knows no workload."""
