"""The five published studies: their numbers, a workload of their own, and their files."""
