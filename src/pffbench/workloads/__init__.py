"""One small file per access pattern, written over the backend interface; knows no library."""
