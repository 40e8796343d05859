"""Published models: their parameter totals, from our formula and from Hugging Face's own classes."""

import json

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from lecture_utils.llama import PRESETS, KVCache, Llama, LlamaConfig, flops_per_token, kv_cache_bytes
from lecture_utils.parity import reference

TOTALS = {
    "Llama-2-7B": 6_738_415_616,
    "Llama-2-13B": 13_015_864_320,
    "Llama-2-70B": 68_976_648_192,
    "Llama-3-8B": 8_030_261_248,
    "Llama-3-70B": 70_553_706_496,
    "Llama-3.1-8B": 8_030_261_248,
    "Llama-3.1-70B": 70_553_706_496,
    "Llama-3.1-405B": 405_853_388_800,
    "Llama-3.2-1B": 1_235_814_400,
    "Llama-3.2-3B": 3_212_749_824,
    "SmolLM2-135M": 134_515_008,
    "TinyLlama-1.1B": 1_100_048_384,
}


# rope_theta, rms_norm_eps, max_position_embeddings, factor of llama3 scaling: no parameter count shows them.
NUMBERS = {
    "Llama-2": (1e4, 1e-5, 4096, None),
    "Llama-3-": (5e5, 1e-5, 8192, None),
    "Llama-3.1": (5e5, 1e-5, 131072, 8.0),
    "Llama-3.2": (5e5, 1e-5, 131072, 32.0),
    "SmolLM2": (1e5, 1e-5, 8192, None),
    "TinyLlama": (1e4, 1e-5, 2048, None),
}


@pytest.mark.parametrize("name", PRESETS)
def test_numbers_that_do_not_change_the_parameter_count(name):
    config, (family,) = PRESETS[name], [family for family in NUMBERS if name.startswith(family)]
    theta, eps, length, factor = NUMBERS[family]
    assert (config.rope_theta, config.rms_norm_eps) == (theta, eps)
    assert config.max_position_embeddings == length
    if factor is None:
        assert config.rope_scaling is None
    else:
        assert config.rope_scaling == {
            "rope_type": "llama3",
            "factor": factor,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        }


def test_defaults_are_those_of_hugging_face(tmp_path):
    reference.HFLlamaConfig().save_pretrained(tmp_path)
    assert LlamaConfig.from_pretrained(tmp_path) == LlamaConfig()


def test_every_preset_has_a_total():
    assert TOTALS.keys() == PRESETS.keys()


@pytest.mark.parametrize("name", PRESETS)
def test_total_is_exact(name):
    assert PRESETS[name].num_parameters == TOTALS[name]


@pytest.mark.parametrize("name", PRESETS)
def test_total_is_that_of_hugging_face_on_the_meta_device(name):
    assert reference.num_parameters(PRESETS[name]) == TOTALS[name]


def test_biases_and_a_free_head_dim_are_counted_as_hugging_face_counts_them():
    config = LlamaConfig(
        vocab_size=50,
        hidden_size=24,
        intermediate_size=40,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=10,
        attention_bias=True,
        mlp_bias=True,
    )
    assert config.num_parameters == reference.num_parameters(config)


@pytest.mark.parametrize("name", PRESETS)
def test_config_survives_the_json_of_hugging_face(name, tmp_path):
    reference.llama_config(PRESETS[name]).save_pretrained(tmp_path)
    assert LlamaConfig.from_pretrained(tmp_path) == PRESETS[name]


def test_config_json_of_transformers_4_is_read(tmp_path):
    scaling = {"type": "linear", "factor": 2.0}
    values = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4,
              "rope_theta": 5e5, "rope_scaling": scaling, "torch_dtype": "bfloat16"}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(values))
    config = LlamaConfig.from_pretrained(tmp_path)
    assert config.rope_theta == 5e5
    assert config.rope_scaling == {"rope_type": "linear", "factor": 2.0}


def test_wrong_config_files_get_a_sentence(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"holds no config\.json"):
        LlamaConfig.from_pretrained(tmp_path)
    file = tmp_path / "config.json"
    for text, message in (
        ("{", "not valid JSON"),
        ('{"model_type": "mistral"}', "model_type is 'mistral'"),
        ('{"hidden_act": "gelu"}', "hidden_act is 'gelu'"),
        ("[]", "must hold an object"),
    ):
        file.write_text(text)
        with pytest.raises(ValueError, match=message):
            LlamaConfig.from_pretrained(tmp_path)


def test_a_hub_id_without_a_network_gets_a_sentence(monkeypatch):
    def no_network(*_):
        raise ConnectionError("unreachable")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", no_network)
    with pytest.raises(FileNotFoundError, match=r"is no folder here.*\(ConnectionError\)"):
        LlamaConfig.from_pretrained("nobody/no-such-model")


@pytest.mark.parametrize("name", ["SmolLM2-135M", "Llama-2-7B", "Llama-3.2-3B"])
def test_arithmetic_is_what_pytorch_counts(name):
    with torch.device("meta"):
        model, ids = Llama(PRESETS[name], "eager"), torch.zeros(1, 5, dtype=torch.long)
        with FlopCounterMode(display=False) as counter:
            model(ids)
    # The eager form computes all 5 × 5 scores, also those behind the mask.
    assert counter.get_total_flops() == 5 * sum(flops_per_token(PRESETS[name], 5).values())


def test_bytes_of_a_cache_are_those_of_its_tensors():
    config = PRESETS["SmolLM2-135M"]
    cache = KVCache(config, 2, 7, torch.bfloat16)
    expected = kv_cache_bytes(30, 3, 64, batch=2, seq_len=7, bytes_per_value=2)
    assert cache.keys.nbytes + cache.values.nbytes == expected
