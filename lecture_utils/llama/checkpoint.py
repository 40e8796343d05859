"""Checkpoints: safetensors files with Hugging Face's names, read whole or not at all.

Pickles are refused: to read one is to run what is written in it.
"""

import json
import re
from pathlib import Path

from torch import Tensor, nn

from .config import LlamaConfig
from .rope import interleaved_to_half

WHOLE, INDEX = "model.safetensors", "model.safetensors.index.json"
PICKLES = ("*.bin", "*.pth", "*.pt", "*.ckpt")
# In Meta's files the words are others, and rows of wq and wk stand in the interleaved order.
META_NAMES = {
    "tok_embeddings": "model.embed_tokens",
    "norm": "model.norm",
    "output": "lm_head",
    "attention.wq": "self_attn.q_proj",
    "attention.wk": "self_attn.k_proj",
    "attention.wv": "self_attn.v_proj",
    "attention.wo": "self_attn.o_proj",
    "attention_norm": "input_layernorm",
    "feed_forward.w1": "mlp.gate_proj",
    "feed_forward.w3": "mlp.up_proj",
    "feed_forward.w2": "mlp.down_proj",
    "ffn_norm": "post_attention_layernorm",
}


def load(folder_or_hub_id: str | Path, config: LlamaConfig) -> dict[str, Tensor]:
    """All tensors of a checkpoint, by name.

    Args:
        folder_or_hub_id: a folder with `model.safetensors`, or with its index and the files that are
            named there; or the id of a model on the hub.
        config: a tied head that is not in the file is taken from the embedding.

    Raises:
        FileNotFoundError: no such folder or file, or the hub does not answer.
        ValueError: a file is no safetensors file or cut short.
    """
    folder = Path(folder_or_hub_id)
    if not folder.is_dir():
        folder = _from_hub(str(folder_or_hub_id))
    state = {}
    for file in _files(folder):
        state |= _read(file)
    # Old files hold the frequencies of RoPE, too; they follow from the config.
    state = {name: tensor for name, tensor in state.items() if not name.endswith("rotary_emb.inv_freq")}
    if config.tie_word_embeddings and "model.embed_tokens.weight" in state:
        state["lm_head.weight"] = state["model.embed_tokens.weight"]
    return state


def _from_hub(name: str) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=["config.json", "*.safetensors", INDEX]))
    except Exception as error:
        raise FileNotFoundError(
            f"{name!r} is no folder here, and could not be had from the hub ({type(error).__name__}): "
            f"check the name and the network"
        ) from error


def _files(folder: Path) -> list[Path]:
    """The files of a folder that hold its tensors."""
    if (folder / INDEX).is_file():
        try:
            places = json.loads((folder / INDEX).read_text(encoding="utf-8"))["weight_map"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{folder / INDEX} is no index of a checkpoint: {error!r}") from error
        files = [folder / name for name in sorted(set(places.values()))]
    else:
        files = [folder / WHOLE]
    for file in files:
        if not file.is_file():
            found = sorted(path.name for kind in PICKLES for path in folder.glob(kind))
            but = f", but {found[0]}, a pickle, which could run code: convert it first" if found else ""
            raise FileNotFoundError(f"the folder {folder} holds no {file.name}{but}")
    return files


def _read(file: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(file)
    except (SafetensorError, ValueError) as error:
        raise ValueError(f"{file} is no safetensors file, or was cut short ({error})") from error


def expect_fitting(state: dict[str, Tensor], model: nn.Module) -> None:
    """Raises ValueError, with the names, if tensors are missing, left over, or of another shape."""
    wanted = model.state_dict()
    shapes = [
        f"{name} is {list(state[name].shape)}, expected {list(tensor.shape)}"
        for name, tensor in wanted.items()
        if name in state and state[name].shape != tensor.shape
    ]
    problems = {
        "missing": sorted(wanted.keys() - state.keys()),
        "left over": sorted(state.keys() - wanted.keys()),
        "of another shape": shapes,
    }
    told = [f"{what}: {_some(names)}" for what, names in problems.items() if names]
    if told:
        raise ValueError(f"the checkpoint does not fit its config.json. {'; '.join(told)}")


def _some(names: list[str], most: int = 4) -> str:
    more = f", and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def save(model: nn.Module, folder: str | Path) -> None:
    """Write `config.json` and `model.safetensors` into a folder, made if it is not there.

    Args:
        model: a `Llama`. A tied head is one tensor, and is written once.
        folder: where to; files of these two names are replaced.
    """
    from safetensors.torch import save_file

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    state = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    if model.config.tie_word_embeddings:
        del state["lm_head.weight"]
    dtype = str(model.lm_head.weight.dtype).removeprefix("torch.")
    fields = model.config.to_dict() | {"torch_dtype": dtype}
    (folder / "config.json").write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8")
    save_file(state, folder / WHOLE, metadata={"format": "pt"})


def convert_meta(state: dict[str, Tensor], config: LlamaConfig) -> dict[str, Tensor]:
    """Tensors of Meta's original files under our names, rows of queries and keys in our order.

    Args:
        state: by Meta's names, `layers.0.attention.wq.weight` and so on, of one unsharded file.
        config: for the numbers of heads.

    Raises:
        ValueError: a name that is not Meta's.
    """
    heads = {"attention.wq": config.num_attention_heads, "attention.wk": config.num_key_value_heads}
    converted = {}
    for name, tensor in state.items():
        found = re.fullmatch(r"(?:layers\.(\d+)\.)?([\w.]+)\.weight", name)
        if name == "rope.freqs":
            continue
        if not found or found[2] not in META_NAMES:
            raise ValueError(f"{name} is no name of Meta's Llama")
        layer = f"model.layers.{found[1]}." if found[1] else ""
        if found[2] in heads:
            tensor = interleaved_to_half(tensor, heads[found[2]])
        converted[f"{layer}{META_NAMES[found[2]]}.weight"] = tensor
    return converted
