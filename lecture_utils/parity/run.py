"""Runs one implementation on hostile weights and inputs, and collects what came out and what flowed back.

Nothing is shared: every run has its own copies, so that a part which writes into its inputs or
weights cannot change what the other one sees. Ours is also called more than once, on other data in
between, since a cache that is filled in the first call would be right in a proof that calls once.
"""

import copy
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor, nn

Part = nn.Module | Callable[..., Tensor | tuple[Tensor, ...]]

# Of one run, on the CPU: outputs by name, and under "gradient of …" what flowed back.
Results = dict[str, Tensor | None]


class Difference(Exception):
    """A way in which a part is not like its reference; the message is a sentence."""


def name_of(part: Part) -> str:
    """The name of a module's class, or of a function."""
    return type(part).__name__ if isinstance(part, nn.Module) else getattr(part, "__name__", "function")


def _parameters(part: Part) -> dict[str, nn.Parameter]:
    return dict(part.named_parameters()) if isinstance(part, nn.Module) else {}


def hostile_weights(ours: Part, theirs: Part, seed: int) -> dict[str, Tensor]:
    """Weights by name, fp32 on the CPU, for both; raises if the two do not have the same ones.

    Matrices are scaled up, biases are not 0, and weights of norms are around 1 or −1: a module as it
    is initialised hides most mistakes.
    """
    shapes = {name: tuple(p.shape) for name, p in _parameters(theirs).items()}
    our_shapes = {name: tuple(p.shape) for name, p in _parameters(ours).items()}
    if shapes != our_shapes:
        names = sorted(n for n in shapes.keys() | our_shapes.keys() if shapes.get(n) != our_shapes.get(n))
        differences = [
            f"{n} is {our_shapes.get(n, 'absent')}, expected {shapes.get(n, 'absent')}" for n in names
        ]
        raise Difference(f"parameters of {name_of(ours)}: {'; '.join(differences)}")
    generator = torch.Generator().manual_seed(seed)
    weights = {}
    for name, shape in shapes.items():
        noise = torch.randn(shape, generator=generator)
        if name.endswith("bias"):
            weights[name] = 0.5 * noise
        elif len(shape) <= 1:
            weights[name] = (1 + 0.3 * noise) * torch.where(torch.arange(noise.numel()) % 4 == 1, -1, 1)
        else:
            weights[name] = noise * 2 / shape[-1] ** 0.5
    return weights


def cases(inputs: Sequence[Tensor], magnitudes: Sequence[float]) -> Iterator[tuple[str, list[Tensor]]]:
    """The inputs at every magnitude, as zeros, not contiguous, and as a batch of one, each with a label."""
    for magnitude in magnitudes:
        yield f"inputs × {magnitude:g}", [x * magnitude if x.is_floating_point() else x for x in inputs]
    yield "inputs all 0", [x * 0 if x.is_floating_point() else x for x in inputs]
    yield "inputs not contiguous", [strided(x) for x in inputs]
    if all(x.dim() and len(x) == len(inputs[0]) > 1 for x in inputs):
        yield "only the first of the batch", [x[:1] for x in inputs]


def strided(x: Tensor) -> Tensor:
    """The same values as a view: memory runs the other way round, or in steps of two."""
    if x.dim() < 2:
        return torch.stack((x, x), -1)[..., 0]
    order = range(x.dim() - 1, -1, -1)
    return x.permute(*order).contiguous().permute(*order)


def run_theirs(part: Part, weights, inputs, device: str, dtype: torch.dtype, seed: int) -> Results:
    """Outputs and gradients of a copy of the reference."""
    with torch.inference_mode(False), torch.enable_grad():
        part = _with_weights(part, weights, device, dtype)
        leaves = [_leaf(x, device, dtype) for x in inputs]
        return _differentiate(part(*leaves), leaves, _parameters(part), seed)


def run_ours(part: Part, weights, inputs, device: str, dtype: torch.dtype, seed: int) -> Results:
    """Outputs and gradients of a copy of ours; raises Difference if it has a side effect or a memory."""
    with torch.inference_mode(False), torch.enable_grad():
        part = _with_weights(part, weights, device, dtype)
        parameters = _parameters(part)
        leaves = [_leaf(x, device, dtype) for x in inputs]
        others = [_leaf(_other(x), device, dtype) for x in inputs]

        # A first call with other weights on other inputs: what it keeps must not be used below.
        with torch.no_grad():
            for parameter in parameters.values():
                parameter.neg_()
            part(*others)
            for parameter in parameters.values():
                parameter.neg_()
        data = (*leaves, *parameters.values())
        before = [x.detach().clone() for x in data]
        outputs = part(*leaves)
        _expect_unchanged(data, before)
        first = [output.detach().clone() for output in _tensors(outputs)]
        part(*others)
        if not _same(_tensors(outputs), first):
            raise Difference("an output changes when the part is called again: is its memory used twice?")
        if not torch.is_grad_enabled():
            raise Difference("gradients are switched off after the call, for everybody")
        results = _differentiate(outputs, leaves, parameters, seed)
        _expect_unchanged(data, before)
        if isinstance(part, nn.Module):
            part.eval()
        with torch.no_grad():
            again = part(*(x.detach() for x in leaves))
        if not _alike(_tensors(again), first):
            raise Difference("outputs are others in eval mode without gradients")
        return results


def run_formula(formula, weights, inputs, dtype: torch.dtype, seed: int) -> Results:
    """The same from the formula in float64, for weights and inputs that were rounded to `dtype`."""

    def exact(x: Tensor) -> Tensor:
        return x.to(dtype).double().detach().requires_grad_() if x.is_floating_point() else x

    with torch.inference_mode(False), torch.enable_grad():
        parameters = {name: exact(w) for name, w in weights.items()}
        leaves = [exact(x) for x in inputs]
        return _differentiate(formula(parameters, *leaves), leaves, parameters, seed, rounded_to=dtype)


def _with_weights(part: Part, weights, device: str, dtype: torch.dtype) -> Part:
    if not isinstance(part, nn.Module):
        return part
    # Only parameters are cast: `.to(dtype)` would round the buffer `inv_freq` of a Llama as well.
    part = copy.deepcopy(part).to(device)
    for name, parameter in part.named_parameters():
        parameter.data = weights[name].to(device, dtype, copy=True)
        parameter.requires_grad_()
    return part


def _leaf(x: Tensor, device: str, dtype: torch.dtype) -> Tensor:
    if not x.is_floating_point():
        return x.to(device, copy=True)
    return x.detach().to(device, dtype, copy=True).requires_grad_()


def _other(x: Tensor) -> Tensor:
    """Inputs of the same shapes with other values."""
    if x.is_floating_point():
        return -x
    return x.flip(-1) if x.dim() else x


def _tensors(outputs) -> tuple[Tensor, ...]:
    outputs = tuple(outputs) if isinstance(outputs, tuple | list) else (outputs,)
    for output in outputs:
        if not isinstance(output, Tensor):
            raise Difference(f"an output is a {type(output).__name__}, not a tensor")
    return outputs


def _expect_unchanged(data: Sequence[Tensor], before: Sequence[Tensor]) -> None:
    if not _same(data, before):
        raise Difference("the part writes into its inputs or its weights")


def _same(now: Sequence[Tensor], before: Sequence[Tensor]) -> bool:
    return len(now) == len(before) and all(
        a.shape == b.shape and bool(((a == b) | (a.isnan() & b.isnan())).all())
        for a, b in zip(now, before, strict=True)
    )


def _alike(now: Sequence[Tensor], before: Sequence[Tensor]) -> bool:
    """The same but for roundings: without gradients PyTorch may choose another kernel."""
    return _same(now, before) or all(
        a.shape == b.shape and bool((a - b).abs().max() <= 16 * torch.finfo(b.dtype).eps * b.abs().max())
        for a, b in zip(now, before, strict=True)
    )


def _differentiate(outputs, leaves, parameters, seed: int, rounded_to: torch.dtype | None = None) -> Results:
    """Outputs by name, and the gradients of inputs and parameters for random gradients sent back."""
    single = isinstance(outputs, Tensor)
    outputs = _tensors(outputs)
    names = ["output"] if single else [f"output {i}" for i in range(len(outputs))]
    results: Results = {n: o.detach().cpu() for n, o in zip(names, outputs, strict=True)}

    sources = {f"gradient of input {i}": x for i, x in enumerate(leaves) if x.is_floating_point()}
    sources |= {f"gradient of {name}": p for name, p in parameters.items()}
    differentiable = [o for o in outputs if o.requires_grad]
    if not sources or not differentiable:
        return results | dict.fromkeys(sources)
    generator = torch.Generator().manual_seed(seed + 1)
    sent_back = []
    for output in differentiable:
        noise = torch.randn(output.shape, generator=generator)
        noise = noise.to(rounded_to or output.dtype)  # the formula is sent what the part is sent
        sent_back.append(noise.to(output.device, output.dtype))
    before = [g.clone() for g in sent_back]
    gradients = torch.autograd.grad(differentiable, list(sources.values()), sent_back, allow_unused=True)
    if not _same(sent_back, before):
        raise Difference("backward writes into the gradient that it is given")
    return results | {n: None if g is None else g.cpu() for n, g in zip(sources, gradients, strict=True)}
