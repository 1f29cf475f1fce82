"""Clock, agreement, topology and decomposition: what the ranks of a job do together."""
