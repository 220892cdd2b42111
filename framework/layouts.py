"""Layouts: how the elements of a tensor are stored, each at its place or only those that are not 0."""

from .config import names


class Layout:
    """How the elements of a tensor are stored: ``strided``, each at its place in one piece of memory, or, of
    a sparse tensor, by what stands beside its values: coordinates, or rows (columns) of elements or blocks.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"{names.package}.{self.name}"

    def __reduce__(self) -> str:
        return self.name


strided = Layout("strided")
sparse_coo, sparse_csr, sparse_csc = Layout("sparse_coo"), Layout("sparse_csr"), Layout("sparse_csc")
sparse_bsr, sparse_bsc = Layout("sparse_bsr"), Layout("sparse_bsc")
jagged = Layout("jagged")  # of nested tensors: sequences behind each other, and where each begins
