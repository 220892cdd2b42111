"""PyTorch's place for changes of traced models."""
