"""The file system under test: scratch directory, page cache, durability, what it is."""
