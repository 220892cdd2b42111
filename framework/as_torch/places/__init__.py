"""Places of PyTorch that stand for something else here: they are found under ``torch`` only."""
