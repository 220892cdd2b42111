"""What the sample table cannot say of embedding: gradients that are scaled on purpose, and max_norm."""

import numpy as np
import pytest

import framework as fw

F = fw.nn.functional
INDEX = [[1, 4, 1], [0, 4, 4]]


def gradient(**settings):
    w = fw.ones(5, 2, requires_grad=True)
    g = fw.arange(12).reshape(2, 3, 2).float()
    y = F.embedding(fw.tensor(INDEX), w, **settings)
    (first,) = fw.autograd.grad(y, w, g, create_graph=True)
    (plain,) = fw.autograd.grad(F.embedding(fw.tensor(INDEX), w, **settings), w, g)
    np.testing.assert_array_equal(first.detach().numpy(), plain.numpy())
    return plain.numpy()


def dense(scale=lambda i: 1.0):
    out = np.zeros((5, 2))
    g = np.arange(12.0).reshape(6, 2)
    for row, i in zip(g, np.ravel(INDEX)):
        out[i] += row * scale(i)
    return out


def test_gradient_adds_up():
    np.testing.assert_allclose(gradient(), dense())


@pytest.mark.parametrize("padding", [4, -1])
def test_padding_row_gets_no_gradient(padding):
    np.testing.assert_allclose(gradient(padding_idx=padding), dense(lambda i: float(i != 4)))


def test_gradient_by_frequency():
    counts = np.bincount(np.ravel(INDEX))
    np.testing.assert_allclose(gradient(scale_grad_by_freq=True), dense(lambda i: 1 / counts[i]), rtol=1e-6)


def test_like_torch():
    torch = pytest.importorskip("torch")
    for settings in ({}, {"padding_idx": 4}, {"scale_grad_by_freq": True},
                     {"padding_idx": 1, "scale_grad_by_freq": True}):
        w = torch.ones(5, 2, requires_grad=True)
        g = torch.arange(12).reshape(2, 3, 2).float()
        torch.nn.functional.embedding(torch.tensor(INDEX), w, **settings).backward(g)
        np.testing.assert_allclose(gradient(**settings), w.grad.numpy(), rtol=1e-6)


def test_max_norm_changes_only_the_rows_looked_up():
    w = fw.full((4, 2), 3.0, requires_grad=True)
    version = w._version
    y = F.embedding(fw.tensor([0, 2, 0]), w, max_norm=1.0)
    np.testing.assert_allclose(np.linalg.norm(y.detach().numpy(), axis=1), 1.0, rtol=1e-5)
    assert w[1].tolist() == [3.0, 3.0] and w._version == version + 1
    y.sum().backward()
    assert w.grad.tolist() == [[2, 2], [0, 0], [1, 1], [0, 0]]


def test_a_wrong_index_leaves_the_table_alone():
    w = fw.full((4, 2), 3.0)
    with pytest.raises(IndexError):
        F.embedding(fw.tensor([0, 9]), w, max_norm=1.0)
    assert w.tolist() == [[3.0, 3.0]] * 4


@pytest.mark.parametrize("dtype", [fw.uint8, fw.int32, fw.int64])
def test_gradients_of_repeated_rows_add_up_for_narrow_indices(dtype):
    table = fw.zeros(300, 3, requires_grad=True)
    i = fw.tensor([[200, 7], [200, 255]], dtype=dtype)
    g = fw.arange(12.0).reshape(2, 2, 3)
    fw.nn.functional.embedding(i, table).backward(g)
    expected = np.zeros((300, 3))
    np.add.at(expected, i.numpy().astype(int), g.numpy())
    assert np.array_equal(table.grad.numpy(), expected)
