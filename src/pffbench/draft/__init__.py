"""An experiment drafted from a file of the user: what `pffbench init` writes."""
