"""PyTorch without Python inside: functions traced once to graphs of its own operations.

A Keras layer call costs some 80 microseconds beside its arithmetic, a Keras operation 15: in a
decoding step more than the arithmetic. `Traced` runs a function once on made-up sizes, which tells
it from no real one, records the operations that reach PyTorch, and runs those from then on at 2 to
4 microseconds each. What depends on weights alone is computed once a change of the weights.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import fx
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

aten = torch.ops.aten

# Made-up sizes, primes that are no real size nor a multiple of one: where one of them or a simple
# expression of them stands in a graph, it is a size that varies. (PyTorch's own symbolic sizes
# say the same without a doubt, but take twenty times as long to trace: 11 s for a small model.)
ROWS = 16411
POSITIONS = (2100001, 1500007, 1048583)  # falling: later arguments, as prefixes, are shorter
TURN = 300007
LARGE = 2**17  # no fixed size is as large
MOST_BEAMS, MOST_EXTRA = 64, 20000

_tracing: list[_Trace] = []


class Traced:
    """`function` of trees of tensors, run as a graph; what it closes over is constant but weights.

    A function that asks for a tensor's value, as dropout in training does, is run as it is.

    Args:
        function: of tensors with one first axis in common.
        weights: `weights()` gives the tensors that may have new values at each call.
        varying_axes: how many of the tensors' first axes may vary from call to call without a
            new tracing.
    """

    def __init__(self, function: Callable, weights: Callable, varying_axes: int = 1):
        self.function = function
        self.weights = weights
        self.varying_axes = varying_axes
        self.graphs: dict[Any, tuple[Callable, Any]] = {}
        self.identities: tuple = ()
        self.versions: tuple = ()
        self.programs: list[Program] = []

    @torch.no_grad()
    def __call__(self, *arguments: Any) -> Any:
        leaves, structure = pytree.tree_flatten(arguments)
        tensors = [x if x is None else torch.as_tensor(x) for x in leaves]
        self._look_at_weights()
        key = (
            structure,
            tuple(x if x is None else (x.dtype, x.shape[self.varying_axes :]) for x in tensors),
        )
        if key not in self.graphs:
            try:
                self.graphs[key] = self._trace(tensors, structure)
            except DataDependentOutputException:
                self.graphs[key] = None
        if self.graphs[key] is None:
            return self.function(*pytree.tree_unflatten(tensors, structure))
        run, result_structure = self.graphs[key]
        return pytree.tree_unflatten(run(*(x for x in tensors if x is not None)), result_structure)

    def _look_at_weights(self):
        weights = self.weights()
        identities = tuple(id(x) for x in weights)
        if identities != self.identities:  # other tensors: the graphs hold the old ones
            self.graphs.clear()
            self.programs.clear()
            self.identities, self.held = identities, weights
        versions = tuple(x._version for x in weights)
        if versions != self.versions:
            for program in self.programs:
                program.fold()
            self.versions = versions

    def _trace(self, tensors, structure):
        trace = _Trace()
        fakes = [x if x is None else trace.fake(x, self.varying_axes) for x in tensors]
        found = {}

        def flat(*present):
            present = iter(present)
            leaves = [x if x is None else next(present) for x in tensors]
            results = self.function(*pytree.tree_unflatten(leaves, structure))
            leaves, found["structure"] = pytree.tree_flatten(results)
            return leaves

        with trace:
            run = trace.program(flat, [x for x in fakes if x is not None])
        for program in trace.programs:
            program.fold()
        self.programs += trace.programs
        return run, found["structure"]


def row_loop(body: Callable, length: Any, done_B: Any, found: Any, alive: Any) -> Any:
    """`ops.row_loop` on PyTorch: as a node of the graph while one is traced, else at once."""
    if not _tracing:
        return _run_loop(body, length, done_B, found, alive)
    return _tracing[-1].loop(body, length, done_B, found, alive)


def _run_loop(body, length, done_B, found, alive):
    """The loop itself; rows that are done leave when they are half of all."""
    results = places = None
    for i in range(1, length):
        rows = done_B.shape[0]
        left = rows - int(done_B.sum())
        if left == 0:
            break
        if 2 * left <= rows:
            keep = torch.nonzero(~done_B)[:, 0]
            if places is None:
                results, places = found, keep
            else:
                _put(results, places, found)
                places = places[keep]
            select = functools.partial(torch.index_select, dim=0, index=keep)
            done_B, found, alive = pytree.tree_map(select, (done_B, found, alive))
        done_B, found, alive = body(i, done_B, found, alive)
    if places is None:
        return found
    _put(results, places, found)
    return results


def _put(results, places, found):
    for result, x in zip(pytree.tree_leaves(results), pytree.tree_leaves(found), strict=True):
        result[places] = x


class _Trace:
    """One tracing of a function and of the loops inside it."""

    def __init__(self):
        self.programs: list[Program] = []
        self.mode = FakeTensorMode(allow_non_fake_inputs=True)
        self.positions = iter(POSITIONS)
        self.recorders: list[_Recorder] = []

    def __enter__(self):
        _tracing.append(self)

    def __exit__(self, *_):
        _tracing.pop()

    def fake(self, tensor: torch.Tensor, varying_axes: int) -> torch.Tensor:
        """A tensor without values, its first axes of made-up sizes, the very first one shared."""
        shape = list(tensor.shape)
        for axis in range(min(varying_axes, len(shape))):
            shape[axis] = next(self.positions) if axis else ROWS
        with self.mode:
            return torch.empty(shape, dtype=tensor.dtype, device=tensor.device)

    def program(self, function: Callable, fakes: list) -> Program:
        """The graph of a function of a list of tensors to a list of tensors."""
        recorder = _Recorder(fakes)
        self.recorders.append(recorder)
        with _disable_current_modes(), self.mode, recorder:
            results = function(*fakes)
        self.recorders.pop()
        recorder.graph.output([recorder.node_of(x) for x in results])
        program = Program(recorder.graph, recorder.constants)
        self.programs.append(program)
        return program

    def loop(self, body, length, done_B, found, alive):
        """Puts a loop into the graph that is being recorded, its body recorded apart."""
        if not _varies(length):
            raise ValueError(
                "length of a compiled loop must depend on the shape of an argument, "
                f"got {length} whatever the arguments are"
            )
        leaves, structure = pytree.tree_flatten((done_B, found, alive))

        def flat(*leaves):
            results = body(TURN, *pytree.tree_unflatten(list(leaves), structure))
            leaves, same = pytree.tree_flatten(results)
            assert same == structure, f"a loop's tree must stay as it is: {structure}, {same}"
            return leaves

        program = self.program(flat, leaves)

        def run(i, *state):
            return pytree.tree_unflatten(program(*pytree.tree_leaves(state), i), structure)

        def whole_loop(length, leaves):
            state = pytree.tree_unflatten(leaves, structure)
            return pytree.tree_leaves(_run_loop(run, length, *state))

        recorder = self.recorders[-1]
        with _disable_current_modes(), self.mode:
            results = pytree.tree_map(torch.empty_like, found)
        nodes = [recorder.node_of(x) for x in leaves]
        recorder.record(whole_loop, (length, nodes), {}, pytree.tree_leaves(results))
        return results


class _Recorder(TorchDispatchMode):
    """Writes down each operation that reaches PyTorch.

    Args:
        inputs: tensors whose values the graph is a function of; it holds all others.
    """

    def __init__(self, inputs: list[torch.Tensor]):
        super().__init__()
        self.graph = fx.Graph()
        self.constants: dict[str, torch.Tensor] = {}
        self.nodes: dict[int, fx.Node] = {}
        self.alive: list[torch.Tensor] = []  # so that no other gets the id of one
        for i, x in enumerate(inputs):
            self._know(x, self.graph.placeholder(f"input_{i}"))

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor | list | tuple):
            args, kwargs = pytree.tree_map(self.node_of, (args, kwargs or {}))
            self.record(function, args, kwargs, result)
        return result

    def record(self, function, args, kwargs, result):
        """A node for a call that gave a tensor or several."""
        node = self.graph.call_function(function, tuple(args), kwargs)
        if isinstance(result, torch.Tensor):
            self._know(result, node)
            return
        for i, x in enumerate(result):
            if isinstance(x, torch.Tensor):
                self._know(x, self.graph.call_function(operator.getitem, (node, i)))

    def node_of(self, x):
        """The node that gives a tensor; what is no tensor stays as it is."""
        if not isinstance(x, torch.Tensor):
            return x
        if id(x) not in self.nodes:
            assert not isinstance(x, FakeTensor), (
                "a loop's body must not close over tensors that are computed outside of it"
            )
            name = f"constant_{len(self.constants)}"
            self.constants[name] = x
            self._know(x, self.graph.create_node("get_attr", name))
        return self.nodes[id(x)]

    def _know(self, x, node):
        self.alive.append(x)
        if id(x) not in self.nodes:  # else it was written in place
            self.nodes[id(x)] = node
            node.meta["shape"] = tuple(x.shape)


class Program:
    """A recorded graph, made faster, with what depends on weights alone computed ahead.

    Args:
        graph: of the operations.
        constants: the tensors that it holds, by name: weights and what does not change.
    """

    def __init__(self, graph: fx.Graph, constants: dict[str, torch.Tensor]):
        _vary_sizes(graph)
        _drop_idle(graph)
        _share(graph)
        _fuse_linear(graph)
        graph.eliminate_dead_code(_is_impure)
        self._constants = constants
        self._missing = (None,) * len(graph.find_nodes(op="placeholder"))
        self._ahead: list[fx.Node] = []  # in order
        self._stored: dict[fx.Node, str] = {}
        self._split(graph)
        self.module = fx.GraphModule(dict.fromkeys(self._stored.values()), graph)

    def __call__(self, *arguments: Any) -> list:
        """The results for tensors, and for a loop's body the number of its turn after them."""
        return self.module.forward(*arguments, *self._missing[len(arguments) :])

    def fold(self) -> None:
        """Computes what depends on weights alone, from their present values."""
        values = {}

        def value(x):
            return values[x] if isinstance(x, fx.Node) else x

        for node, op, target, args, kwargs in self._ahead:
            if op == "get_attr":
                values[node] = self._constants[target]
            else:
                args, kwargs = fx.node.map_aggregate((args, kwargs), value)
                values[node] = target(*args, **kwargs)
            if node in self._stored:  # past nn.Module's slow look-up of attributes
                self.module.__dict__[self._stored[node]] = values[node]

    def _split(self, graph):
        """Takes constant nodes out of the graph; what the rest needs of them it finds stored."""
        constant = set()
        for node in graph.nodes:
            pure = node.op == "call_function" and not _is_impure(node)
            if node.op == "get_attr" or (pure and all(x in constant for x in node.all_input_nodes)):
                constant.add(node)
                self._ahead.append((node, node.op, node.target, node.args, node.kwargs))
        for node in list(graph.nodes):
            if node in constant and any(user not in constant for user in node.users):
                self._stored[node] = name = f"_stored_{len(self._stored)}"
                with graph.inserting_before(node):
                    stored = graph.create_node("get_attr", name)
                users = [user for user in node.users if user not in constant]
                for user in users:
                    user.replace_input_with(node, stored)
        for node in reversed(list(graph.nodes)):
            if node in constant:
                graph.erase_node(node)


def _is_impure(node: fx.Node) -> bool:
    """Whether a node does more than give a value that depends on its arguments alone."""
    if node.op in ("placeholder", "output"):
        return True
    if node.op != "call_function":
        return False
    if isinstance(node.target, torch._ops.OpOverload):
        return (
            node.target._schema.is_mutable
            or torch.Tag.nondeterministic_seeded in node.target.tags
            or "empty" in node.target.name()
        )
    return getattr(node.target, "__name__", "") == "whole_loop"


def _vary_sizes(graph: fx.Graph) -> None:
    """Puts expressions of the real sizes in place of the made-up ones, which it was traced with."""
    inputs = graph.find_nodes(op="placeholder")
    first = next(node for node in graph.nodes if node.op != "placeholder")
    with graph.inserting_before(first):
        sizes = {TURN: graph.placeholder("turn")}
        for node in inputs:
            for axis, size in enumerate(node.meta["shape"]):
                if _varies(size) and size not in sizes:
                    sizes[size] = graph.call_function(aten.sym_size.int, (node, axis))
    known: dict[int, fx.Node] = {}

    def node_of(number):
        if type(number) is not int or not _varies(number):
            return number
        if number not in known:
            known[number] = made(number)
        return known[number]

    def made(number):
        if number in sizes:
            return sizes[number]
        if number % ROWS == 0:
            return graph.call_function(operator.mul, (sizes[ROWS], node_of(number // ROWS)))
        factor, terms, rest = _expression(number, [x for x in sizes if x % ROWS])
        total = rest
        for term, sign in terms:
            change = operator.add if sign > 0 else operator.sub
            total = graph.call_function(change, (total, sizes[term]))
        return graph.call_function(operator.mul, (total, factor)) if factor > 1 else total

    for node in list(graph.nodes):
        if node.op in ("call_function", "output"):
            with graph.inserting_before(first):
                node.args = fx.node.map_aggregate(node.args, node_of)
                node.kwargs = fx.node.map_aggregate(node.kwargs, node_of)


def _varies(number: int) -> bool:
    """Whether a number in a graph comes from a made-up size."""
    is_size = number >= LARGE or (number >= ROWS and number % ROWS == 0)
    return is_size and number != 2**63 - 1  # to the end, in slices


def _expression(number: int, sizes: list) -> tuple[int, list, int]:
    """number = factor (rest + the signed sum of some sizes), the simplest such."""
    choices = list(itertools.product((0, 1, -1), repeat=len(sizes)))
    choices.sort(key=lambda signs: sum(map(abs, signs)))
    for signs, factor in itertools.product(choices[1:], range(1, MOST_BEAMS + 1)):
        terms = [(size, sign) for size, sign in zip(sizes, signs, strict=True) if sign]
        rest, remainder = divmod(number, factor)
        rest -= sum(size * sign for size, sign in terms)
        if not remainder and abs(rest) < MOST_EXTRA:
            return factor, terms, rest
    raise AssertionError(f"a size that cannot be told from the inputs' in a graph: {number}")


def _drop_idle(graph: fx.Graph) -> None:
    """Nodes that give their argument back."""
    for node in list(graph.nodes):
        whole_slice = (
            node.target is aten.slice.Tensor
            and (len(node.args) < 3 or node.args[2] in (0, None))
            and (len(node.args) < 4 or node.args[3] in (None, 2**63 - 1))
        )
        if whole_slice or node.target in (aten.detach.default, aten.alias.default):
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)


def _share(graph: fx.Graph) -> None:
    """Equal operations on equal arguments once. Caches are read by views, after all writing."""
    seen: dict[Any, fx.Node] = {}
    for node in list(graph.nodes):
        if node.op == "get_attr":
            key = node.target
        elif node.op == "call_function" and not _is_impure(node):
            key = node.target, _frozen(node.args), _frozen(node.kwargs)
        else:
            continue
        if key in seen:
            node.replace_all_uses_with(seen[key])
            graph.erase_node(node)
        else:
            seen[key] = node


def _frozen(x):
    if isinstance(x, list | tuple):
        return tuple(_frozen(y) for y in x)
    if isinstance(x, dict):
        return tuple((name, _frozen(y)) for name, y in sorted(x.items()))
    return type(x), x  # 1, 1.0 and True are equal to Python


def _fuse_linear(graph: fx.Graph) -> None:
    """Products with weights, a bias and ReLU after them, as one operation on packed weights."""
    for node in list(graph.nodes):
        if node.target is not aten.mm.default or not _is_weight(node.args[1]):
            continue
        x, weight = node.args
        last, bias, activation = node, None, "none"
        views = []
        while len(last.users) == 1:
            (user,) = last.users
            if user.target in (aten._unsafe_view.default, aten.view.default) and bias is None:
                views.append(user)
            elif user.target is aten.add.Tensor and bias is None and _is_bias(user, last):
                bias = user.args[1]
            elif user.target is aten.relu.default and bias is not None:
                activation = "relu"
            else:
                break
            last = user
        with graph.inserting_before(node):
            packed = graph.call_function(pack, (weight,))
        # Where the last of them stands, for there the bias is known.
        with graph.inserting_before(last):
            new = graph.call_function(linear, (x, packed, bias, activation))
            for view in views:
                new = graph.call_function(view.target, (new, *view.args[1:]))
        last.replace_all_uses_with(new)
    graph.eliminate_dead_code(_is_impure)


def _is_weight(node):
    """Whether a matrix depends on weights alone."""
    return node.op == "get_attr" or (
        node.op == "call_function"
        and not _is_impure(node)
        and bool(node.all_input_nodes)
        and all(_is_weight(x) for x in node.all_input_nodes)
    )


def _is_bias(add, last):
    other = add.args[1]
    return (
        add.args[0] is last
        and not add.kwargs
        and isinstance(other, fx.Node)
        and _is_weight(other)
        and len(other.meta["shape"]) == 1
    )


FEW_ROWS = 8  # up to here PyTorch's float32 product of plain weights is the faster one


def pack(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
    """A matrix (D, F), and its form in oneDNN's own order, where that can be."""
    packed = None
    if weight.device.type == "cpu" and weight.dtype in (torch.float32, torch.bfloat16):
        try:
            packed = torch.ops.mkldnn._reorder_linear_weight(weight.t().contiguous(), None)
        except (AttributeError, RuntimeError):  # a PyTorch or a processor without it
            packed = None
    return weight, packed


def linear(x: torch.Tensor, matrix: tuple, bias: torch.Tensor | None, activation: str) -> Any:
    """activation(x W + b) of x (R, D), by the fastest way for its rows."""
    weight, packed = matrix
    if packed is None or (x.shape[0] <= FEW_ROWS and x.dtype == torch.float32):
        x = x @ weight if bias is None else torch.addmm(bias, x, weight)
        return torch.relu_(x) if activation == "relu" else x
    return torch.ops.mkldnn._linear_pointwise(x, packed, bias, activation, [], "")
