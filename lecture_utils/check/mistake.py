"""A known mistake: a wrong implementation that runs, its name, and the way out of it in three hints."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Mistake:
    """One mistake.

    `id` is stable ("mean-subtracted"), `name` a sentence that says what the function does, `hints` a
    question, a pointer, and nearly the answer. `functions` are implementations: several where people
    write it in several ways. An `accepted` one is right all the same, and only mentioned. `on` is the label
    of the cases that show it best; "" is the smallest that shows it.
    """

    id: str
    name: str
    hints: tuple[str, str, str]
    functions: tuple[Callable, ...]
    accepted: bool = False
    on: str = ""


class Catalogue:
    """The mistakes of one exercise, in the order in which they are tried.

    `@catalogue.add(id, name, question, pointer, nearly)` adds a function as a mistake,
    `@catalogue.also(id)` another way to make it.
    """

    def __init__(self) -> None:
        self._mistakes: dict[str, Mistake] = {}

    def add(
        self,
        id: str,
        name: str,
        question: str,
        pointer: str,
        nearly: str,
        *,
        accepted: bool = False,
        on: str = "",
    ) -> Callable:
        """A decorator: the function makes this mistake. `accepted` and `on` as in `Mistake`."""

        def enter(function: Callable) -> Callable:
            if id in self._mistakes:
                raise ValueError(f"the mistake {id!r} is there already: another way to make it is `also`")
            self._mistakes[id] = Mistake(id, name, (question, pointer, nearly), (function,), accepted, on)
            return function

        return enter

    def also(self, id: str) -> Callable:
        """A decorator: the function makes the mistake `id` in another way."""

        def enter(function: Callable) -> Callable:
            known = self._mistakes[id]
            self._mistakes[id] = replace(known, functions=(*known.functions, function))
            return function

        return enter

    def take(
        self,
        other: "Catalogue",
        adapt: Callable[[Callable], Callable] = lambda function: function,
        without: tuple[str, ...] = (),
        accept: bool = True,
    ) -> None:
        """Take over the mistakes of another exercise, each function adapted to this one.

        Args:
            without: ids that are left out.
            accept: whether what is accepted there is accepted here.
        """
        for m in other:
            if m.id not in without:
                functions = tuple(adapt(function) for function in m.functions)
                self._mistakes[m.id] = replace(m, functions=functions, accepted=m.accepted and accept)

    def __iter__(self) -> Iterator[Mistake]:
        return iter(self._mistakes.values())

    def __len__(self) -> int:
        return len(self._mistakes)

    def __getitem__(self, id: str) -> Mistake:
        return self._mistakes[id]
