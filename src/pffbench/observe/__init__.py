"""What is measured on a rank: the clock, counters, memory, load of the machine."""
