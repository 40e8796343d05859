"""Runs one implementation on hostile weights and inputs, and collects what came out and what flowed back.

Modules, weights and inputs are copied, so that a part which writes into them cannot change what the
other one sees. (Functions are called as they are.) Ours is one copy for all cases, and is called on
other data in between: what it keeps from one call to the next would be right in a proof that calls once.
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
    """The name of a function, or of the class of a module or another callable."""
    return getattr(part, "__name__", type(part).__name__)


def _parameters(part: Part) -> dict[str, nn.Parameter]:
    return dict(part.named_parameters()) if isinstance(part, nn.Module) else {}


def _described(part: Part) -> dict[str, str]:
    """What a parameter is, by name: its shape, whether it is frozen, and whose memory it shares."""
    described, owners = {}, {}
    for name, parameter in _parameters(part).items():
        owner = owners.setdefault(parameter.untyped_storage().data_ptr(), name)
        described[name] = str(tuple(parameter.shape))
        if not parameter.requires_grad:
            described[name] += " frozen"
        if owner != name and parameter.numel():
            described[name] += f" in the memory of {owner}"
    return described


def hostile_weights(ours: Part, theirs: Part, seed: int) -> dict[str, Tensor]:
    """Weights by name, fp32 on the CPU, for both; raises if the two do not have the same ones.

    Matrices are scaled up, biases are not 0, and weights of norms are around 1 or −1: a module as it
    is initialised hides most mistakes.
    """
    ours_by_name, theirs_by_name = _described(ours), _described(theirs)
    if theirs_by_name != ours_by_name:
        names = sorted(theirs_by_name.keys() | ours_by_name.keys())
        differences = [
            f"{name} is {ours_by_name.get(name, 'absent')}, expected {theirs_by_name.get(name, 'absent')}"
            for name in names
            if ours_by_name.get(name) != theirs_by_name.get(name)
        ]
        raise Difference(f"parameters of {name_of(ours)}: {'; '.join(differences)}")
    generator = torch.Generator().manual_seed(seed)
    weights = {}
    for name, parameter in _parameters(theirs).items():
        noise = torch.randn(parameter.shape, generator=generator)
        if name.endswith("bias"):
            weights[name] = 0.5 * noise
        elif noise.dim() <= 1:
            sign = torch.where(torch.arange(noise.numel()) % 4 == 1, -1, 1)
            weights[name] = (1 + 0.3 * noise) * sign.reshape(noise.shape)
        else:
            weights[name] = noise * 2 / noise.shape[-1] ** 0.5
    return weights


ONE_OF_BATCH = "only the first of the batch"
NOT_CONTIGUOUS = "nothing contiguous"


def cases(inputs: Sequence[Tensor], magnitudes: Sequence[float]) -> Iterator[tuple[str, list[Tensor]]]:
    """The inputs at every magnitude, as zeros, not contiguous, and as a batch of one, each with a label."""
    for magnitude in magnitudes:
        yield f"inputs × {magnitude:g}", [x * magnitude if x.is_floating_point() else x for x in inputs]
    yield "inputs all 0", [x * 0 if x.is_floating_point() else x for x in inputs]
    yield NOT_CONTIGUOUS, [strided(x) for x in inputs]
    if all(x.dim() > 1 and len(x) == len(inputs[0]) > 1 for x in inputs):
        yield ONE_OF_BATCH, [x[:1] for x in inputs]


def strided(x: Tensor) -> Tensor:
    """The same values as a view: memory runs the other way round, or in steps of two."""
    if x.dim() < 2:
        return torch.stack((x, x), -1)[..., 0]
    order = range(x.dim() - 1, -1, -1)
    return x.permute(*order).contiguous().permute(*order)


def prepared(part: Part, weights, device: str, dtype: torch.dtype) -> Part:
    """A copy of `part` with these weights, on this device and in this dtype; a function as it is."""
    if not isinstance(part, nn.Module):
        return part
    # Only parameters are cast: `.to(dtype)` would round the buffer `inv_freq` of a Llama as well.
    part = copy.deepcopy(part).to(device).train()
    for name, parameter in part.named_parameters():
        parameter.data = weights[name].to(device, dtype, copy=True)
        parameter.requires_grad_()
    return part


def run_theirs(part: Part, inputs, device: str, dtype: torch.dtype, seed: int, back=None) -> Results:
    """Outputs and gradients of the reference; `back` rearranges the gradients that are sent back."""
    with torch.inference_mode(False), torch.enable_grad():
        leaves = [_leaf(x, device, dtype) for x in inputs]
        results = _differentiate(part(*leaves), leaves, _parameters(part), seed, back=back)
        # What ours must give when nobody asks for gradients, too.
        outputs = [(n, t) for n, t in results.items() if not n.startswith("gradient")]
        return results | {f"{name} without gradients": t for name, t in outputs}


def run_ours(part: Part, inputs, device: str, dtype: torch.dtype, seed: int, back=None) -> Results:
    """Outputs and gradients of ours; raises Difference if it has a side effect."""
    with torch.inference_mode(False), torch.enable_grad():
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
        data, random_state = (*leaves, *parameters.values()), torch.get_rng_state()
        before = [x.detach().clone() for x in data]
        outputs = part(*leaves)
        _expect_unchanged(data, before)
        first = [output.detach().clone() for output in _tensors(outputs)]
        part(*others)
        if not _same(_tensors(outputs), first):
            raise Difference("an output changes when the part is called again: is its memory used twice?")
        if not torch.is_grad_enabled():
            raise Difference("gradients are switched off after the call, for everybody")
        results = _differentiate(outputs, leaves, parameters, seed, back=back)
        _expect_unchanged(data, before)
        if not torch.equal(random_state, torch.get_rng_state()):
            raise Difference("the part uses or sets the global random state")
        with torch.no_grad():
            again = _tensors(part(*(x.detach() for x in leaves)))
        names = [name for name in results if not name.startswith("gradient")]
        return results | {f"{name} without gradients": t.cpu() for name, t in zip(names, again, strict=True)}


def run_formula(formula, weights, inputs, dtype: torch.dtype, seed: int) -> Results:
    """The same from the formula in float64, for weights and inputs that were rounded to `dtype`."""

    def exact(x: Tensor) -> Tensor:
        return x.to(dtype).double().detach().requires_grad_() if x.is_floating_point() else x

    with torch.inference_mode(False), torch.enable_grad():
        parameters = {name: exact(w) for name, w in weights.items()}
        leaves = [exact(x) for x in inputs]
        return _differentiate(formula(parameters, *leaves), leaves, parameters, seed, rounded_to=dtype)


def _leaf(x: Tensor, device: str, dtype: torch.dtype) -> Tensor:
    copied = x.detach().to(device, dtype if x.is_floating_point() else x.dtype, copy=True)
    if not x.is_contiguous():
        copied = strided(copied)  # a copy in steps of two would have become contiguous
    return copied.requires_grad_() if x.is_floating_point() else copied


def _other(x: Tensor) -> Tensor:
    """Inputs of the same shapes with other values."""
    return -1.7 * x if x.is_floating_point() else x.flip(-1) // 2 if x.dim() else x


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


def _differentiate(
    outputs, leaves, parameters, seed: int, rounded_to: torch.dtype | None = None, back=None
) -> Results:
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
        noise = noise.to(output.device, output.dtype)
        sent_back.append(back(noise) if back else noise)
    before = [g.clone() for g in sent_back]
    gradients = torch.autograd.grad(differentiable, list(sources.values()), sent_back, allow_unused=True)
    if not _same(sent_back, before):
        raise Difference("backward writes into the gradient that it is given")
    return results | {n: None if g is None else g.cpu() for n, g in zip(sources, gradients, strict=True)}
