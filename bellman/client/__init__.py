"""Lets an application on the `openai` package answer congestion: `adapt`; see docs/client.md."""

try:
    from bellman.client.adapted import AdaptedAsyncOpenAI, AdaptedOpenAI, adapt
except ModuleNotFoundError as error:
    if error.name != "openai":
        raise
    message = "bellman.client needs the package openai: install the extra `client`"
    raise ModuleNotFoundError(message, name="openai") from None

__all__ = ["AdaptedAsyncOpenAI", "AdaptedOpenAI", "adapt"]
