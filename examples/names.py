"""From which language is a name? An LSTM over letters, in batches of different lengths without padding.

    python examples/names.py --data ../shared/data/names     # one file of names for each language
"""

import argparse
import unicodedata
from pathlib import Path

from tqdm import tqdm

import framework as fw
from framework import nn
from framework.nn.utils.rnn import PackedSequence, pack_sequence

LETTERS = "abcdefghijklmnopqrstuvwxyz '-"


class Names(fw.data.Dataset):
    """(numbers of the letters, number of the language) of every name in the files of a folder."""

    def __init__(self, folder: Path) -> None:
        files = sorted(folder.glob("*.txt"))
        if not files:
            raise FileNotFoundError(f"there are no .txt files in {folder}")
        self.languages = [file.stem for file in files]
        self.items = [(self.numbers(name), i) for i, file in enumerate(files)
                      for name in file.read_text(encoding="utf-8").split("\n") if self.plain(name)]

    @staticmethod
    def plain(name: str) -> str:
        """Without accents, in small letters."""
        letters = unicodedata.normalize("NFD", name).lower().strip()
        return "".join(c for c in letters if c in LETTERS)

    def numbers(self, name: str) -> fw.Tensor:
        return fw.tensor([LETTERS.index(c) for c in self.plain(name)])

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, i: int) -> tuple[fw.Tensor, int]:
        return self.items[i]


def collate(samples: list) -> tuple[PackedSequence, fw.Tensor]:
    """Names one after the other, as recurrent layers take them."""
    names, languages = zip(*samples)
    return pack_sequence(list(names), enforce_sorted=False), fw.tensor(languages)


class Classifier(nn.Module):
    """Letters to the logits of the languages."""

    def __init__(self, languages: int, width: int = 64) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(LETTERS), 32)
        self.rnn = nn.LSTM(32, width, bidirectional=True)
        self.out = nn.Linear(2 * width, languages)

    def forward(self, names: PackedSequence) -> fw.Tensor:
        _, (last, _) = self.rnn(names._replace(data=self.embedding(names.data)))
        return self.out(fw.cat([last[0], last[1]], 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with one .txt for each language")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--quick", action="store_true", help="fewer names, in seconds")
    args = parser.parse_args()
    fw.manual_seed(args.seed)
    data = Names(args.data)
    train, test, _ = fw.data.random_split(data, [3000, 1000, len(data) - 4000]) if args.quick else \
        fw.data.random_split(data, [len(data) - 2000, 2000, 0])
    counts = fw.bincount(fw.tensor([data.items[i][1] for i in train.indices]), minlength=len(data.languages))
    model = Classifier(len(data.languages)).to(args.device)
    optimizer = fw.optim.AdamW(model.parameters(), lr=4e-3)
    loader = fw.data.DataLoader(train, batch_size=64, shuffle=True, collate_fn=collate)
    for epoch in range(2 if args.quick else args.epochs):
        model.train()
        for names, languages in tqdm(loader, desc=f"epoch {epoch + 1}"):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(names.to(args.device)), languages.to(args.device)).backward()
            optimizer.step()
    model.eval()
    with fw.no_grad():
        right = sum(int((model(x.to(args.device)).argmax(1).cpu() == y).sum()) for x, y in
                    fw.data.DataLoader(test, batch_size=500, collate_fn=collate))
    print(f"test accuracy {right / len(test):.1%} (always {data.languages[int(counts.argmax())]}: "
          f"{sum(data.items[i][1] == int(counts.argmax()) for i in test.indices) / len(test):.1%})")


if __name__ == "__main__":
    main()
