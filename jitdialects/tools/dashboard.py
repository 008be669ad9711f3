"""`jd.dashboard`: the live page of this process.

    url = jd.dashboard.start(port=0)     # or JITDIALECTS_DASH=8000 in the environment

The page is served by daemon threads on the loopback interface; looking costs a few milliseconds a second, and
nothing while nobody looks. `view_server` says who may ask.
"""

from __future__ import annotations

import logging

from jitdialects.config import config
from jitdialects.errors import ConfigError
from jitdialects.runtime.explain import explain
from jitdialects.runtime.snapshot import snapshot
from jitdialects.tools.metrics import CONTENT_TYPE, exposition
from jitdialects.tools.view_server import LOCAL_NAMES, Frames, Source, Views

logger = logging.getLogger("jitdialects")


class Dashboard(Views):
    """The page, its data, what `jd.explain()` says, and the metrics."""

    name = "dashboard"

    def sources(self) -> dict[str, tuple[str, Source]]:
        """What is served."""
        return {
            "/snapshot.json": ("application/json", Frames(snapshot)),
            "/explain": ("text/plain", explain),
            "/metrics": (CONTENT_TYPE, exposition),
        }

    def start_as_configured(self) -> None:
        """Start where `config.dash` says. What fails is said once and disturbs nobody."""
        try:
            place, secret = config.dash, config.dash_token
            if place is None:
                return
            try:
                token = None if secret is None else secret.bytes().decode()
            except (OSError, UnicodeError) as error:
                raise ConfigError(f"JITDIALECTS_DASH_TOKEN cannot be read ({error})") from None
            if "/" in place:
                self.start(path=place, token=token)
            else:
                host, _, port = place.rpartition(":")
                host = host.strip("[]")
                if host not in LOCAL_NAMES and token is None:
                    raise ConfigError(
                        f"{place} is open to other machines: set JITDIALECTS_DASH_TOKEN"
                    )
                self.start(int(port), host, token=token)
        except (ConfigError, OSError) as error:
            logger.warning("JITDIALECTS_DASH: %s", error)
        else:
            logger.info("the dashboard is at %s", (self.url or "").partition("?")[0])


dashboard = Dashboard()
"""The page of the process."""
