"""Version histories of small tables, and stores that keep all versions or the last one."""
