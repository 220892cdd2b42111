"""A scikit-learn estimator around a Module: pipelines, cross-validation and search work as with any other."""

import argparse

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import framework as fw
from framework import nn
from framework.models import MLP
from framework.utils.training import progress


class NetClassifier(ClassifierMixin, BaseEstimator):
    """A multilayer perceptron with the methods of a scikit-learn classifier."""

    def __init__(self, width: int = 32, epochs: int = 30, lr: float = 5e-3, weight_decay: float = 1e-3,
                 seed: int = 0, device: str = "cpu") -> None:
        self.width, self.epochs, self.lr, self.weight_decay = width, epochs, lr, weight_decay
        self.seed, self.device = seed, device

    def fit(self, X: np.ndarray, y: np.ndarray) -> "NetClassifier":
        fw.manual_seed(self.seed)
        self.classes_, numbers = np.unique(y, return_inverse=True)
        data = fw.data.TensorDataset(fw.tensor(X).float(), fw.tensor(numbers).long())
        self.model_ = MLP(X.shape[1], [self.width], len(self.classes_), dropout=0.2).to(self.device)
        optimizer = fw.optim.AdamW(self.model_.parameters(), lr=self.lr, weight_decay=self.weight_decay)
        for _ in progress(range(self.epochs), leave=False):  # the bars of many fits would fill the screen
            for x, wanted in fw.data.DataLoader(data, batch_size=32, shuffle=True):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(self.model_(x.to(self.device)), wanted.to(self.device))
                loss.backward()
                optimizer.step()
        self.model_.eval()
        return self

    @fw.no_grad()
    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self.model_(fw.tensor(X).float().to(self.device)).softmax(1).cpu().numpy()

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.classes_[self.predict_proba(X).argmax(1)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--quick", action="store_true", help="fewer folds and epochs")
    args = parser.parse_args()
    folds, epochs = (3, 8) if args.quick else (args.folds, 30)
    X, y = load_breast_cancer(return_X_y=True)
    net = NetClassifier(epochs=epochs, seed=args.seed, device=args.device)
    pipeline = make_pipeline(StandardScaler(), net)
    search = GridSearchCV(pipeline, {"netclassifier__width": [8, 32]}, cv=folds).fit(X, y)
    scores = cross_val_score(search.best_estimator_, X, y, cv=folds)
    print(f"accuracy {scores.mean():.1%} over {folds} folds with {search.best_params_}")


if __name__ == "__main__":
    main()
