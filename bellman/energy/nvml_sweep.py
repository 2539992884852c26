"""One round of questions to the driver, made in the meter's own thread."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bellman.energy.nvml_driver import Driver, DriverError, GpuState
from bellman.energy.visible_gpus import Gpu


@dataclass(frozen=True, slots=True)
class Answer:
    """What the driver said of one card, or why it did not. Times are those of the loop's clock."""

    counter_s: float
    """When the counter was read: the middle of the call."""
    counter_j: float | DriverError
    power_s: float
    power: tuple[float, str] | DriverError | None
    """Watts and their kind; None where it was not asked for."""
    state: GpuState | None
    took_s: float


def sweep(
    driver: Driver,
    gpus: Sequence[Gpu],
    clock: Callable[[], float],
    with_power: bool,
    with_state: bool,
) -> list[Answer]:
    """Ask for every card's counter, and power and state where wanted."""
    return [_ask(driver, gpu, clock, with_power, with_state) for gpu in gpus]


def _ask(
    driver: Driver, gpu: Gpu, clock: Callable[[], float], with_power: bool, with_state: bool
) -> Answer:
    began_s = clock()
    counter_j = _counter(driver, gpu)
    read_s = clock()
    power = _power(driver, gpu) if with_power else None
    sampled_s = clock()
    state = driver.state(gpu) if with_state and not isinstance(counter_j, DriverError) else None
    return Answer(
        counter_s=(began_s + read_s) / 2,
        counter_j=counter_j,
        power_s=(read_s + sampled_s) / 2,
        power=power,
        state=state,
        took_s=sampled_s - began_s,
    )


def _counter(driver: Driver, gpu: Gpu) -> float | DriverError:
    try:
        return driver.energy_j(gpu)
    except DriverError as error:
        return error


def _power(driver: Driver, gpu: Gpu) -> tuple[float, str] | DriverError:
    try:
        return driver.power_w(gpu)
    except DriverError as error:
        return error
