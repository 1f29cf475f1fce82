"""What ranks do together: agreement on errors, collectives, topology, exchange of data."""
