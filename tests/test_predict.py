"""The question that opens a lesson."""

from lecture_utils.predict import Prediction


def question():
    return Prediction("Which?", ["this", "that"])


def test_nothing_is_chosen_and_the_answer_is_told_all_the_same(capsys):
    prediction = question()
    assert prediction.chosen is None
    prediction.reveal("that")
    assert capsys.readouterr().out.startswith("The computation says: that.\nYou had not chosen")


def test_the_choice_is_compared_with_the_answer(capsys):
    prediction = question()
    prediction._choice.value = "this"
    prediction.reveal("this")
    assert "You said the same." in capsys.readouterr().out
    prediction.reveal("that")
    assert "You said: this." in capsys.readouterr().out


def test_a_viewer_without_widgets_sees_the_question_as_text():
    data = question()._repr_mimebundle_()
    assert data["text/plain"] == "Which?\n  ○ this\n  ○ that"
    assert "application/vnd.jupyter.widget-view+json" in data
