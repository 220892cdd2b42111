"""Where PyTorch programs look for embeddings: names only."""

from ..embedding import Embedding as Embedding
from ..embedding import EmbeddingBag as EmbeddingBag
