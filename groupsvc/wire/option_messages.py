"""What an operator and a daemon say about options; part of ``client_messages``, where all of them are listed.

An option that the whole domain shares is a setting of the directory under ``OPTION_PREFIX`` and its name, so
``ConfigSet`` and ``ConfigAsk`` change and read it as of now. What a daemon makes of it is its own: a variable of its
environment may say otherwise. That is what ``OptionsAsk`` asks for.
"""

from __future__ import annotations

from .client_forms import ClientReply, ClientRequest
from .kinds import Kind
from .table_lines import OptionLine

OPTION_PREFIX = "daemon/"
"""How the keys of settings begin that are options of the daemons; all others belong to programs."""


class OptionsAsk(ClientRequest, tag=int(Kind.OPTIONS_ASK)):
    """What are the options of this daemon? Answered at once, from its own memory."""

    id: int


class OptionsAre(ClientReply, tag=int(Kind.OPTIONS_ARE)):
    """All options of a daemon, by name."""

    id: int
    node: str
    options: tuple[OptionLine, ...]
