"""Ranks for tests: ``on_ranks(n, function, *args)`` runs it in ``n`` forked processes that have met."""

import os
import tempfile

import framework as fw
import framework.distributed as dist
import framework.multiprocessing as mp


def _rank(rank, n, address, timeout, function, args):
    fw.set_num_threads(1)
    dist.init_process_group("shm", address, rank=rank, world_size=n, timeout=timeout)
    function(rank, n, *args)
    dist.barrier()
    dist.destroy_process_group()


def on_ranks(n, function, *args, timeout=60):
    """Run ``function(rank, n, *args)`` in ``n`` ranks; the first error comes here."""
    with tempfile.TemporaryDirectory() as directory:
        address = f"file://{os.path.join(directory, 'here')}"
        mp.start_processes(_rank, (n, address, timeout, function, args), n, start_method="fork")
