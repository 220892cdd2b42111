"""Workers of the data loader: processes or threads that make its batches ahead of time.

pool (processes) and threads are the two kinds; worker is what runs in a process, channel and memory are how
batches come home, feed decides which worker makes which and in which order they are handed out.
"""
