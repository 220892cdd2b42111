"""TensorBoard: ``SummaryWriter``, over tensorboardX (extra ``tensorboard``), that takes our tensors."""

from collections.abc import Callable
from types import TracebackType
from typing import Any

from ..config import need
from ..config.listing import own as _own
from ..nn.module import Module
from ..nn.utils.as_it_was import as_it_was
from ..profiler.program_lines import module_path
from ..seam import Event, intercept
from ..tensor import Tensor


class SummaryWriter:
    """Write what TensorBoard shows: scalars, histograms, images, figures, text, graphs and more.

    log_dir: the directory of the run (default: ``runs/`` and the time and the name of the machine). Other
    arguments are those of tensorboardX's writer: ``comment``, ``purge_step``, ``max_queue``, ``flush_secs``,
    ``filename_suffix``. A context manager, which closes the files.

    Its methods are tensorboardX's (``add_scalar``, ``add_scalars``, ``add_histogram``, ``add_image``,
    ``add_images``, ``add_figure``, ``add_text``, ``add_hparams``, ``add_pr_curve``, ``add_embedding``,
    ``add_video``, ``add_audio``, ``add_mesh``, ``flush``, ``close`` ...); tensors are taken wherever arrays
    and numbers are, on any device and whether they require gradients or not. ``add_graph`` is our own.
    Raises MissingExtraError without tensorboardX.

    Source of the format: tensorflow.org/tensorboard.
    """

    def __init__(
        self,
        log_dir: Any = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
        **others: Any,
    ) -> None:
        package = need("tensorboardX", "tensorboard", "SummaryWriter")
        self._writer = package.SummaryWriter(
            None if log_dir is None else str(log_dir),
            comment,
            purge_step,
            max_queue,
            flush_secs,
            filename_suffix,
            **others,
        )
        self.log_dir = self._writer.logdir

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"SummaryWriter has no attribute {name!r}")
        found = getattr(self._writer, name)
        if not callable(found):
            return found

        def call(*args: Any, **settings: Any) -> Any:
            return found(*map(_plain, args), **{k: _plain(v) for k, v in settings.items()})

        return call

    def get_logdir(self) -> str:
        """The directory of the run."""
        return self.log_dir

    def add_graph(
        self, model: Module, input_to_model: Any = None, verbose: bool = False, **others: Any
    ) -> None:
        """Run ``model`` once and write the graph of its ops, in boxes by module.

        It is run in evaluation mode, without recording, and left as it was: modes, buffers, random numbers.
        input_to_model: a tensor, or a tuple of arguments. verbose: also print the nodes.
        """
        if input_to_model is None:
            raise TypeError("add_graph: give input_to_model, the tensors that the model is to run on")
        nodes = graph_of(model, *(input_to_model if isinstance(input_to_model, tuple) else (input_to_model,)))
        if verbose:
            print(*(f"{node.name} = {node.op}({', '.join(node.inputs)})" for node in nodes), sep="\n")
        event = need("tensorboardX.proto.event_pb2", "tensorboard", "add_graph").Event(
            graph_def=_graph_def(nodes)
        )
        self._writer._get_file_writer().add_event(event, None, None)

    def __enter__(self) -> "SummaryWriter":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _plain(value: Any) -> Any:
    """Tensors as arrays, those of no dimensions as numbers; also in lists, tuples and dicts."""
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        if value.ndim == 0:
            return value.item()
        return (value.float() if value.dtype.name in ("bfloat16", "float16") else value).numpy()
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    if type(value) is dict:
        return {key: _plain(v) for key, v in value.items()}
    return value


# -- graphs ----------------------------------------------------------------------------------------


class GraphNode:
    """One op, parameter or input of a model: a name with the path of its module, the names of its inputs."""

    def __init__(self, name: str, op: str, inputs: list[str], shape: tuple[int, ...]) -> None:
        self.name, self.op, self.inputs, self.shape = name, op, inputs, shape


def graph_of(model: Module, *args: Any) -> list[GraphNode]:
    """The ops that ``model(*args)`` runs, in order, with the parameters and inputs that they take."""
    nodes: list[GraphNode] = []
    used: dict[str, int] = {}
    made: dict[int, str] = {}
    alive: list[Any] = []  # so that no id stands for two
    root = type(model).__name__

    def add(name: str, op: str, inputs: list[str], tensor: Tensor) -> None:
        count = used[name] = used.get(name, 0) + 1
        name = name if count == 1 else f"{name}_{count - 1}"
        nodes.append(GraphNode(name, op, inputs, tuple(tensor.shape)))
        made[id(tensor._array)] = name
        alive.append(tensor._array)

    for i, x in enumerate(args):
        if isinstance(x, Tensor):
            add(f"input/{i}", "Placeholder", [], x)
    for name, p in [*model.named_parameters(), *model.named_buffers()]:
        add("/".join([root, *name.split(".")]), "Parameter", [], p)

    def note(event: Event, proceed: Callable) -> Any:
        result = proceed(*event.inputs, **event.settings)
        outputs = [
            x for x in (result if isinstance(result, (tuple, list)) else (result,)) if isinstance(x, Tensor)
        ]
        inputs = [made[id(x._array)] for x in event.inputs if isinstance(x, Tensor) and id(x._array) in made]
        path = "/".join((module_path() or root).split("."))
        for x in outputs:
            add(f"{path}/{event.name}", event.name, inputs, x)
        return result

    with as_it_was(model), intercept(note, shortcuts=False):
        model(*args)
    return nodes


def _graph_def(nodes: list[GraphNode]) -> bytes:
    """The nodes as TensorFlow's GraphDef."""

    def proto(name: str) -> Any:
        return need(f"tensorboardX.proto.{name}_pb2", "tensorboard", "add_graph")

    attributes, shapes = proto("attr_value"), proto("tensor_shape")
    graph = proto("graph").GraphDef(versions=proto("versions").VersionDef(producer=22))
    for node in nodes:
        dims = [shapes.TensorShapeProto.Dim(size=n) for n in node.shape]
        shape = attributes.AttrValue.ListValue(shape=[shapes.TensorShapeProto(dim=dims)])
        graph.node.add(
            name=node.name,
            op=node.op,
            input=node.inputs,
            attr={"_output_shapes": attributes.AttrValue(list=shape)},
        )
    return graph.SerializeToString()


__dir__ = _own(globals())
