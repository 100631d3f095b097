"""What a question is asked reaches what reads it, and its engine: every parameter of a signature, under its name."""

import pytest

from gpucost.arguments import read
from gpucost.ask import QUESTIONS
from gpucost.serving import request as serving
from gpucost.training import request as training


class Passed(Exception):
    """Raised by what stands in for the reading: no question goes on from there."""


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_parameter_of_a_question_is_passed_on_to_be_read(name, monkeypatch):
    question, passed = QUESTIONS[name], {}

    def reading(_, /, **stated):
        passed.update(stated)
        raise Passed

    for reader in {"read", "read_stated"} & question.ask.__globals__.keys():
        monkeypatch.setitem(question.ask.__globals__, reader, reading)
    asked = {argument.name: object() for argument in question.arguments}
    with pytest.raises(Passed):
        question.ask(**asked)
    assert passed == asked  # each object is equal to itself alone


class Watched(dict):
    """Values that remember which of them were looked up."""

    def __init__(self, values):
        super().__init__(values)
        self.unused = set(values)

    def __getitem__(self, name):
        self.unused.discard(name)
        return super().__getitem__(name)


def test_every_argument_of_a_training_run_is_in_its_request():
    values = Watched(read(QUESTIONS["estimate"], model="8b", tokens="1b", gpus=8))
    training.make_request(values)
    assert values.unused == {"with_facts"}  # what the answer holds, not what it is


def test_every_argument_of_a_service_is_in_its_request():
    values = Watched(read(QUESTIONS["inference"], model="8b"))
    serving.make_request(values, {})
    assert values.unused == {"images", "image_size", "steps"}  # of models that see or make images, asked beside it
