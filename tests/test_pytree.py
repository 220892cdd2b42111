"""utils._pytree: structures there and back, beside PyTorch's."""

from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

import framework as fw
from framework.utils import _pytree as T

Point = namedtuple("Point", "x y")
NESTS = [1, None, [1, (2, 3)], {"b": 1, "a": [2, None]}, Point(1, (2,)), OrderedDict(z=1, a=2),
         deque([1, 2], maxlen=3), defaultdict(list, k=1), [], {}, fw.Size((2, 3))]


@pytest.mark.parametrize("nest", NESTS, ids=repr)
def test_there_and_back(nest):
    leaves, spec = T.tree_flatten(nest)
    assert T.tree_unflatten(leaves, spec) == nest and type(T.tree_unflatten(leaves, spec)) is type(nest)
    assert spec.num_leaves == len(leaves) and spec == T.tree_structure(nest)
    assert T.tree_leaves(nest) == leaves == list(T.tree_iter(nest))
    torch = pytest.importorskip("torch")
    theirs = torch.utils._pytree.tree_flatten(nest)
    assert theirs[0] == leaves and theirs[1].num_leaves == spec.num_leaves
    assert [(T.keystr(p), x) for p, x in T.tree_leaves_with_path(nest)] == [
        (torch.utils._pytree.keystr(p), x) for p, x in torch.utils._pytree.tree_leaves_with_path(nest)]


def test_maps():
    assert T.tree_map(lambda x, y: (x, y), [1, {"a": 2}], [3, {"a": [4]}]) == [(1, 3), {"a": (2, [4])}]
    assert T.tree_map(len, [[1], [2, 3]], is_leaf=lambda x: isinstance(x, list) and x and x[0] in (1,
                                                                                                   2)) == [1,
                                                                                                           2]
    assert T.tree_map_only((int, float), str, [1, 2.0, "a"]) == ["1", "2.0", "a"]
    assert T.tree_map_only(lambda x: x == 1, str, [1, 2]) == ["1", 2]
    seen = []
    nest = [1, (2,)]
    assert T.tree_map_(seen.append, nest) is nest and seen == [1, 2]
    assert T.tree_all(bool, [1, [2]]) and T.tree_any(bool, [0, [2]]) and not T.tree_all_only(int, bool, [0,
                                                                                                         "a"])
    assert T.tree_any_only(str, bool, [0, "a"])
    assert T.tree_map_with_path(lambda p, x: (T.keystr(p), x), {"a": [5]}) == {"a": [("['a'][0]", 5)]}
    assert T._broadcast_to_and_flatten([0, 1], T.tree_structure([(1, 2), 3])) == [0, 0, 1]
    assert T._broadcast_to_and_flatten([0], T.tree_structure([(1, 2), 3])) is None
    with pytest.raises(ValueError, match="node"):
        T.tree_map(lambda x, y: x, [1, 2], [1])
    with pytest.raises(ValueError, match="keys"):
        T.tree_map(lambda x, y: x, {"a": 1}, {"b": 1})
    with pytest.raises(ValueError, match="leaves"):
        T.tree_unflatten([1], T.tree_structure([1, 2]))
    with pytest.raises(ValueError, match="already"):
        T.register_pytree_node(dict, None, None)
    assert isinstance(T.LeafSpec(),
                      T.TreeSpec) and T.LeafSpec() == T.tree_structure(0) and T.LeafSpec().is_leaf()


def test_transforms_of_functions_see_registered_nodes():
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    T.register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda parts, _: Pair(*parts))
    try:
        g = fw.func.grad(lambda p: (p.a * p.b).sum())(Pair(fw.ones(2), fw.full((2,), 3.0)))
        assert g.a.tolist() == [3, 3] and g.b.tolist() == [1, 1]
    finally:
        del T.SUPPORTED_NODES[Pair]
