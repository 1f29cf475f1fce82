"""The search for the version of a package from which on a time or a count of a case is another."""
