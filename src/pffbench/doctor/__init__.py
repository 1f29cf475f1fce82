"""`pffbench doctor`: what works here, and remedies for the rest."""
