"""What leads a call to its stubs, as words that `native/vectorcall.ll` reads.

    table      environment, slow, positional group, shapes, their addresses, mask of instances, instances
    group      stubs, their address, mask of the memo, memo, a place for when there is none (2)
    stub       function, state
    shape      positional arguments, keywords, group, whether the order stays, names ..., sources ...
    instances  hash table with open addressing: object, its table, a weak reference to it, nothing

`slow` is called for what no stub takes. A *shape* is one way of giving arguments with keywords: number `k` of the stubs'
arguments is number `sources[k]` of the call's. A *memo* maps the look of a call to the stub that it entered last.

Everything is written while the GIL is held. Whoever writes keeps what it replaces no longer than that: machine
code reads nothing of it after it has let the GIL go.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

Words: TypeAlias = "ctypes.Array[ctypes.c_int64]"
MOST_TRIED = 4
"""With more stubs a group has a memo."""
MEMO_SHARE = 8
"""Places of a memo per stub."""
SMALLEST_INSTANCES = 8


def new_words(*values: int, room: int = 0) -> Words:
    """An array of words that begins with `values`, and `room` zeros behind them."""
    return (ctypes.c_int64 * (len(values) + room))(*values)


def address_of(words: Words) -> int:
    """Where the words are."""
    return ctypes.addressof(words)


def _power_of_two(least: int) -> int:
    return 1 << (least - 1).bit_length()


class Target(Protocol):
    """What a table has of a stub."""

    address: int
    words: Words


@dataclass(frozen=True)
class CallShape:
    """A way of giving arguments: so many by position, then these by name (interned); `sources` as above, and
    `names`: those that the stubs expect by name, sorted."""

    positional: int
    keywords: tuple[str, ...]
    sources: tuple[int, ...]
    names: tuple[str, ...]


class Group:
    """Stubs that take arguments in one order."""

    def __init__(self, stubs: Sequence[Target]) -> None:
        words = [word for stub in stubs for word in (stub.address, address_of(stub.words))]
        self._stubs = new_words(*words)
        places = _power_of_two(MEMO_SHARE * len(stubs)) if len(stubs) > MOST_TRIED else 0
        self._memo = new_words(room=2 * places)
        self.words = new_words(len(stubs), address_of(self._stubs), max(places - 1, 0), room=3)
        self.words[3] = address_of(self._memo if places else self.words) + (0 if places else 32)


class InstanceMap:
    """Objects by identity, with their tables. An object that is gone, of which its weak reference tells, may stay
    in until the next map."""

    def __init__(self, tables: Sequence[tuple[weakref.ref[object], Words]]) -> None:
        self._kept = tables
        places = max(SMALLEST_INSTANCES, _power_of_two(2 * len(tables)))
        self.mask = places - 1
        self.words = words = new_words(room=4 * places)
        for reference, table in tables:
            instance = reference()
            if instance is not None:
                place = id(instance) >> 4 & self.mask
                while words[4 * place]:
                    place = place + 1 & self.mask
                words[4 * place : 4 * place + 3] = id(instance), address_of(table), id(reference)


class CallTable:
    """The table of one object."""

    def __init__(self, environment: int, slow: object) -> None:
        self._slow = slow
        self._nothing = Group(())
        nothing = address_of(self._nothing.words)
        self.words = new_words(environment, id(slow), nothing, 0, 0, 0, 0)
        self._kept: tuple[object, ...] = ()
        self._instances: InstanceMap | None = None

    @property
    def address(self) -> int:
        return address_of(self.words)

    def set_groups(
        self, groups: Mapping[tuple[str, ...], Sequence[Target]], shapes: Sequence[CallShape]
    ) -> None:
        """The stubs by the names that they expect, and the shapes of calls that lead to them."""
        new = {names: Group(stubs) for names, stubs in groups.items() if stubs}
        positional = new.get((), self._nothing)
        shape_words = [_words_of(shape, new[shape.names]) for shape in shapes if shape.names in new]
        shape_list = new_words(*map(address_of, shape_words))
        self.words[2] = address_of(positional.words)
        self.words[3] = (
            0  # a number and its list are two words; machine code comes between bytecodes
        )
        self.words[4] = address_of(shape_list)
        self.words[3] = len(shape_words)
        self._kept = new, shapes, shape_words, shape_list

    def set_instances(self, tables: Sequence[tuple[weakref.ref[object], Words]]) -> None:
        """The objects of methods with the tables of what is bound to them."""
        new = InstanceMap(tables) if tables else None
        self.words[6] = 0
        self.words[5] = new.mask if new else 0
        self.words[6] = address_of(new.words) if new else 0
        self._instances = new


def _words_of(shape: CallShape, group: Group) -> Words:
    in_order = shape.sources == tuple(range(len(shape.sources)))
    names = map(id, shape.keywords)  # interned, as keywords in code are: compared by address
    return new_words(
        shape.positional,
        len(shape.keywords),
        address_of(group.words),
        int(in_order),
        *names,
        *shape.sources,
    )
