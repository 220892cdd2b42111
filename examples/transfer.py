"""Transfer learning: a network that knows one task learns another from a few dozen photos in class folders.

    python examples/transfer.py --data ../shared/data/hymenoptera --weights resnet18.pth
    python examples/transfer.py --data ../shared/data/hymenoptera     # learns to turn photos first

Without ``--weights`` the body first learns, from the same photos without their labels, by how many quarter
turns a photo was turned (Gidaris, Singh and Komodakis, Unsupervised representation learning by predicting
image rotations, ICLR 2018). Then the last layer is replaced, and body and head are trained at different
rates.
"""

import argparse
from pathlib import Path

import framework as fw
from framework import nn
from framework.data import DataLoader, ImageFolder, transforms
from framework.models import load_weights, resnet18
from framework.utils.metrics import accuracy
from framework.utils.training import RunningMean, progress

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def train(model: nn.Module, loader: DataLoader, groups: list, epochs: int, device: str, turned: bool) -> None:
    """Epochs with a rate that rises and falls; with ``turned`` the labels are quarter turns made here."""
    optimizer = fw.optim.AdamW(groups, weight_decay=0.01)
    schedule = fw.optim.lr_scheduler.OneCycleLR(optimizer, [g["lr"] for g in groups],
                                                total_steps=epochs * len(loader))
    model.train()
    for epoch in range(epochs):
        with progress(loader, desc=f"{'turns' if turned else 'photos'} {epoch + 1}/{epochs}") as bar:
            for x, y in bar:
                if turned:
                    y = fw.randint(0, 4, (len(x),))
                    x = fw.stack([fw.rot90(image, int(k), (1, 2)) for image, k in zip(x, y)])
                loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
                bar.show(loss=loss.item())


@fw.no_grad()
def right(model: nn.Module, loader: DataLoader, device: str) -> float:
    model.eval()
    mean = RunningMean()
    for x, y in loader:
        mean.update(accuracy(model(x.to(device)), y), len(y))
    return mean.value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with train/CLASS/*.jpg and "
                                                                 "val/CLASS/*.jpg")
    parser.add_argument("--weights", help="a resnet18 in torchvision's names, .pth or .safetensors")
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, help="where to save the network, e.g. ants.safetensors")
    parser.add_argument("--quick", action="store_true", help="small photos, few epochs, in seconds")
    args = parser.parse_args()
    size, epochs = (32, 4) if args.quick else (args.size, args.epochs)
    fw.manual_seed(args.seed)
    finish = [transforms.ToTensor(), transforms.Normalize(MEAN, STD)]
    varied = transforms.Compose([transforms.RandomResizedCrop(size, scale=(0.5, 1.0)),
                                 transforms.RandomHorizontalFlip(), *finish])
    plain = transforms.Compose([transforms.Resize(size + size // 8), transforms.CenterCrop(size), *finish])
    photos = ImageFolder(args.data / "train", varied)
    loader = DataLoader(photos, 20, shuffle=True, num_workers=args.workers, drop_last=True)
    seen = DataLoader(ImageFolder(args.data / "train", plain), 64)
    unseen = DataLoader(ImageFolder(args.data / "val", plain), 64)
    model = resnet18(num_classes=1000 if args.weights else 4).to(args.device)
    if args.weights:
        load_weights(model, args.weights)
    else:
        every = [{"params": list(model.parameters()), "lr": 2e-3}]
        train(model, loader, every, epochs, args.device, turned=True)
    model.fc = nn.Linear(model.fc.in_features, len(photos.classes)).to(args.device)  # a new head
    head = list(model.fc.parameters())
    body = [p for name, p in model.named_parameters() if not name.startswith("fc.")]
    groups = [{"params": body, "lr": 5e-4}, {"params": head, "lr": 5e-3}]
    train(model, loader, groups, epochs, args.device, turned=False)
    if args.out:
        fw.save({"model": model.state_dict(), "classes": photos.classes}, args.out)
    print(f"accuracy {right(model, seen, args.device):.1%} on the photos it learnt from, "
          f"{right(model, unseen, args.device):.1%} on others")


if __name__ == "__main__":
    main()
