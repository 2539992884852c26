"""Which cards CUDA_VISIBLE_DEVICES means, in the driver's terms.

CUDA programming guide, "CUDA Environment Variables": indices or UUIDs (a unique beginning will do),
up to the first invalid one. NVML's own order is not fixed, CUDA's indices follow the PCI bus where
all cards are alike or CUDA_DEVICE_ORDER=PCI_BUS_ID; so indices are looked up in PCI order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

VISIBLE = "CUDA_VISIBLE_DEVICES"
ORDER = "CUDA_DEVICE_ORDER"


@dataclass(frozen=True, slots=True)
class Gpu:
    """One card as the driver names it."""

    nvml_index: int
    uuid: str
    pci_bus_id: str
    """`00000000:1A:00.0`: sorts in bus order."""
    name: str
    mig: bool
    """The card is split: its counters do not tell the parts apart."""


class Ambiguous(Exception):
    """The cards in use cannot be told, or cannot be measured apart; says why."""


def visible_gpus(gpus: Sequence[Gpu], environment: Mapping[str, str]) -> list[Gpu]:
    """Return the cards that CUDA programs see, in CUDA's order; raises `Ambiguous`."""
    in_bus_order = sorted(gpus, key=lambda gpu: gpu.pci_bus_id)
    wanted = environment.get(VISIBLE)
    if wanted is None:
        chosen = in_bus_order
    else:
        chosen = []
        for entry in map(str.strip, wanted.split(",")):
            gpu = _find(entry, in_bus_order, environment)
            if gpu is None or gpu in chosen:
                break
            chosen.append(gpu)
    if not chosen:
        raise Ambiguous(f"no GPU is visible ({VISIBLE}={wanted})" if wanted is not None
                        else "the driver has no GPU")  # fmt: skip
    refuse_mig(chosen)
    return chosen


def refuse_mig(gpus: Sequence[Gpu]) -> None:
    """Raise `Ambiguous` where a card is split."""
    for gpu in gpus:
        if gpu.mig:
            raise Ambiguous(f"{gpu.uuid} is split by MIG: its counters are the whole card's")


def _find(entry: str, gpus: Sequence[Gpu], environment: Mapping[str, str]) -> Gpu | None:
    if entry.startswith("MIG-"):
        raise Ambiguous(f"{VISIBLE} names a MIG slice ({entry}): counters are the whole card's")
    if entry.startswith("GPU-"):
        named = [gpu for gpu in gpus if gpu.uuid.startswith(entry)]
        return named[0] if len(named) == 1 else None
    if not entry.isdecimal() or int(entry) >= len(gpus):
        return None
    if environment.get(ORDER) != "PCI_BUS_ID" and len({gpu.name for gpu in gpus}) > 1:
        raise Ambiguous(
            f"{VISIBLE}={environment[VISIBLE]} is by CUDA's speed ranking and the cards differ: "
            f"set {ORDER}=PCI_BUS_ID, or use UUIDs"
        )
    return gpus[int(entry)]
