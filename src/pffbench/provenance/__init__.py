"""The provenance of a run: nodes, software, Spack, MPI-IO and Slurm."""
