"""The question that opens a lesson: choose an answer; a computation further down tells which one is right."""

import ipywidgets


class Prediction(ipywidgets.VBox):
    """A question with a few answers to choose from.

    Args:
        question: one sentence.
        options: the answers, two or more.
    """

    def __init__(self, question: str, options: list[str]) -> None:
        if isinstance(options, str) or len(options) < 2:
            raise ValueError("a prediction needs at least two options to choose from")
        self.question, self.options = question, list(options)
        self._choice = ipywidgets.RadioButtons(
            options=self.options, value=None, layout=ipywidgets.Layout(width="max-content")
        )
        super().__init__([ipywidgets.HTML(f"<b>{question}</b>"), self._choice])

    @property
    def chosen(self) -> str | None:
        """The answer that is chosen, or None."""
        return self._choice.value

    def reveal(self, answer: str) -> None:
        """Print the answer that a computation gave, beside the one that was chosen.

        Raises:
            ValueError: `answer` is none of the options.
        """
        if answer not in self.options:
            raise ValueError(f"answer must be one of the options {self.options}, not {answer!r}")
        print(f"The computation says: {answer}.")
        if self.chosen is None:
            print("You had not chosen: scroll up to Predict, choose, and run this cell again.")
        elif self.chosen == answer:
            print("You said the same.")
        else:
            print(f"You said: {self.chosen}. Which step of the lesson made the difference?")

    def _repr_mimebundle_(self, **options):
        """The widget; for a viewer that has none (GitHub), the question and its answers as text."""
        data = super()._repr_mimebundle_(**options)
        data["text/plain"] = "\n".join([self.question, *(f"  ○ {option}" for option in self.options)])
        return data
