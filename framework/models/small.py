"""Small models: a multilayer perceptron, LeNet, a recurrent network over characters."""

from collections.abc import Sequence

from .. import nn
from ..tensor import Tensor


class MLP(nn.Sequential):
    """A multilayer perceptron: Linear layers with an activation between them.

    Shapes: (N, ..., in_features) to (N, ..., out_features); ``hidden`` gives the widths between.
    norm: BatchNorm1d before each activation; dropout: probability after each activation.

    >>> fw.models.MLP(4, [8, 8], 2)(fw.ones(3, 4)).shape
    (3, 2)
    """

    def __init__(
        self,
        in_features: int,
        hidden: Sequence[int],
        out_features: int,
        *,
        activation: type[nn.Module] = nn.ReLU,
        norm: bool = False,
        dropout: float = 0.0,
    ) -> None:
        layers: list[nn.Module] = []
        for width in hidden:
            layers.append(nn.Linear(in_features, width))
            if norm:
                layers.append(nn.BatchNorm1d(width))
            layers.append(activation())
            if dropout:
                layers.append(nn.Dropout(dropout))
            in_features = width
        super().__init__(*layers, nn.Linear(in_features, out_features))


class LeNet(nn.Module):
    """LeNet-5 for images of 32x32 (or 28x28, which are padded): two convolutions, three Linear layers.

    Shapes: (N, channels, 28 or 32, 28 or 32) to (N, num_classes).
    Source: LeCun et al., Gradient-based learning applied to document recognition, Proc. IEEE 1998; with
    ReLU and maximum pooling, as it is mostly written today.

    >>> fw.models.LeNet()(fw.ones(2, 1, 28, 28)).shape
    (2, 10)
    """

    def __init__(self, num_classes: int = 10, channels: int = 1) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(channels, 6, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(
            nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, num_classes)
        )

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[-2:] == (28, 28):
            x = nn.functional.pad(x, (2, 2, 2, 2))
        return self.classifier(self.features(x).flatten(1))


class CharRNN(nn.Module):
    """A recurrent language model: embedding, LSTM or GRU, Linear to the logits of the next character.

    Shapes: indices (N, L) to logits (N, L, vocabulary) and the state after the last character.

    >>> logits, state = fw.models.CharRNN(30, width=16)(fw.zeros(2, 5, dtype=fw.int64))
    >>> logits.shape
    (2, 5, 30)
    """

    def __init__(
        self, vocabulary: int, width: int = 128, layers: int = 1, cell: str = "lstm", dropout: float = 0.0
    ) -> None:
        super().__init__()
        cells = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}
        if cell not in cells:
            raise ValueError(f"CharRNN: cell must be one of {sorted(cells)}, got {cell!r}")
        self.embedding = nn.Embedding(vocabulary, width)
        self.rnn = cells[cell](width, width, layers, batch_first=True, dropout=dropout)
        self.out = nn.Linear(width, vocabulary)

    def forward(self, indices: Tensor, state: object = None) -> tuple[Tensor, object]:
        hidden, state = self.rnn(self.embedding(indices), state)
        return self.out(hidden), state
