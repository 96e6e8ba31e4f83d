"""What is trained, with adapters against their definition."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from privasr_k2.errors import ConfigError
from privasr_k2.training.trainable import LoraConfig, choose_trained, layer_of, merged_adapters
from tests.support.small_am import tiny_model

LORA = LoraConfig(rank=2, scale=1.0, layers=["linear", "pointwise"])


class Net(nn.Module):
    """Linear layers over (N, T, D), and a convolution of width one over (N, D, T)."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.pointwise = nn.Linear(3, 4), nn.Conv1d(4, 5, 1)
        self.wide = nn.Conv1d(5, 2, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.wide(self.pointwise(self.linear(x).transpose(1, 2)))


def grown() -> tuple[Net, torch.Tensor]:
    """A network with adapters that were trained, and an input."""
    torch.manual_seed(1)
    net, x = Net(), torch.randn(2, 6, 3)
    before = net(x)
    names = choose_trained(net, ["lora"], LORA, seed=3)
    assert len(names) == 4 and torch.equal(net(x), before)  # B is zero
    for name, parameter in net.named_parameters():
        if name in names:
            nn.init.normal_(parameter)
    assert not torch.allclose(net(x), before)
    return net, x


def test_merged_adapters_give_the_same_outputs() -> None:
    net, x = grown()
    plain = Net()
    plain.load_state_dict(merged_adapters(net.state_dict()))
    torch.testing.assert_close(plain(x), net(x))
    assert merged_adapters(plain.state_dict()).keys() == plain.state_dict().keys()


def test_an_adapter_is_the_product_of_its_matrices() -> None:
    net, x = grown()
    expected = net.linear.weight + net.linear.lora.up.weight @ net.linear.lora.down.weight
    torch.testing.assert_close(net.linear(x), x @ expected.T + net.linear.bias)
    assert net.pointwise.lora.down.weight.shape == (2, 4, 1) and not hasattr(net.wide, "lora")


def test_the_matrices_of_an_adapter_are_one_layer_and_its_own() -> None:
    found = dict(grown()[0].named_parameters())
    layers = ["linear", "linear", "linear.lora", "linear.lora", "pointwise", "pointwise"]
    layers += ["pointwise.lora", "pointwise.lora", "wide", "wide"]
    assert [*map(layer_of, found)] == layers


def test_only_what_is_chosen_changes() -> None:
    net, x = grown()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    trained = [parameter for parameter in net.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=0.1, weight_decay=0.1)
    net(x).square().sum().backward()
    optimizer.step()
    changed = {n for n, value in net.state_dict().items() if not torch.equal(value, before[n])}
    assert changed == {n for n in before if ".lora." in n}


@pytest.mark.parametrize(
    ("trained", "expected"),
    [
        ([], lambda name: True),
        (["all"], lambda name: True),
        (["bias"], lambda name: name.endswith("bias")),
        (["output"], lambda name: name.startswith("output.")),
        (["last_block"], lambda name: name.startswith(
            ("encoder.blocks.1.", "encoder.norm.", "output."))),
        (["encoder.subsampling", "bias"], lambda name: name.endswith("bias") or name.startswith(
            "encoder.subsampling.")),
    ],
)  # fmt: skip
def test_parts_of_an_acoustic_model(trained, expected) -> None:
    model = tiny_model("tdnn")
    names = choose_trained(model, trained)
    assert names and set(names) == {n for n, _ in model.named_parameters() if expected(n)}
    assert all(value.requires_grad == (n in names) for n, value in model.named_parameters())


def test_the_seed_decides_and_a_second_call_changes_nothing() -> None:
    torch.manual_seed(1)
    nets = [Net() for _ in range(3)]
    for net, seed in zip(nets, (5, 5, 6)):
        choose_trained(net, ["lora"], LORA, seed)
    first, second, third = (net.linear.lora.down.weight for net in nets)
    assert torch.equal(first, second) and not torch.equal(first, third)
    choose_trained(nets[0], ["lora"], LORA, 9)
    assert torch.equal(nets[0].linear.lora.down.weight, second)


@pytest.mark.parametrize("trained", [["joint"], ["last_block"], ["lora"], ["biased"]])
def test_parts_that_there_are_not(trained) -> None:
    wrong = LoraConfig(rank=1, scale=1.0, layers=["query"])
    with pytest.raises(ConfigError):
        choose_trained(Net(), trained, wrong)
    with pytest.raises(ConfigError):
        choose_trained(Net(), ["lora"])
