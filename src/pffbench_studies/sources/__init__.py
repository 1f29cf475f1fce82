"""Sources of data that resemble the data of a study."""
