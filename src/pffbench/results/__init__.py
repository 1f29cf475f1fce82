"""What a run shows: cells, the judge, comparisons, tables and the answer."""
