"""Open a language model where it is to run: in a child process, or in Ray actors."""

from __future__ import annotations

from reverie.memory_graph.errors import ConfigError
from reverie.models.host import ProcessLanguageModel
from reverie.models.language import HostedModel, LanguageSettings
from reverie.models.usage import Meter, MeteredLanguageModel

MAX_HOSTS = 64


def open_language_model(
    settings: LanguageSettings, *, meter: Meter, ray_hosts: int = 0
) -> MeteredLanguageModel:
    """Return the model, loaded, in front of which `meter` counts.

    Args:
        settings: which model, and its bounds.
        meter: counters and budgets of the runtime.
        ray_hosts: 0 starts one child process of this one; N starts N Ray actors, each with a child
            of its own. Ray must be running already then.

    Raises:
        ConfigError: `ray_hosts` out of range, an unknown name, or no language model.
        ModelMissingError: a file is not there; the message says how to get it.
        ModelDamagedError: a file is damaged, or cannot be loaded.
        ModelFailedError: the process ended while it loaded the model.
        ModelUnavailableError: no host starts.
    """
    if not 0 <= ray_hosts <= MAX_HOSTS:
        msg = f"ray_hosts must be 0 to {MAX_HOSTS}, not {ray_hosts}"
        raise ConfigError(msg, setting="ray_hosts")
    if not ray_hosts:
        model: HostedModel = ProcessLanguageModel(settings)
    else:
        from reverie.actors.ray_language import RayLanguageModel

        model = RayLanguageModel(settings, hosts=ray_hosts)
    return MeteredLanguageModel(model, meter)
