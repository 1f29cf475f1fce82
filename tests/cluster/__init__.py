"""A disposable, real Slurm cluster of several virtual nodes on one machine, for tests.

Every node is a set of namespaces with its own slurmd: its own host name, address, process ids,
``/tmp`` and ``/dev/shm``. All nodes live inside one outer set of namespaces, the login host, whose
process 1 is ours: when that ends, the kernel removes every process, mount and network link.

Only the standard library is used here, because the cluster must start before anything is tested.
"""
