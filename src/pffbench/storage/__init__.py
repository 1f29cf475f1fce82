"""The file system under test: type, scratch directory and owner, page cache, durability."""
