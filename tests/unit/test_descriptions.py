"""Every key of an experiment is explained, where editors and terminals show it."""

import json
from typing import Annotated, ClassVar

import msgspec
import pytest

from launch import pffbench_here
from pffbench.backends.registry import backend_class, backend_names
from pffbench.commands.describe import keys_of
from pffbench.descriptions import field_descriptions
from pffbench.experiment.schema import Experiment
from pffbench.workloads.registry import workload, workload_names

RECORDS = {
    "experiment": Experiment,
    **{f"workload {name}": workload(name).parameters_type for name in workload_names()},
    **{f"backend {name}": backend_class(name).options_type for name in backend_names()},
}


@pytest.fixture(scope="module")
def definitions():
    return json.loads(pffbench_here("keys", "--schema").stdout)["$defs"]


def unexplained(properties):
    texts = {key: schema.get("description", "") for key, schema in properties.items()}
    return {key: text for key, text in texts.items() if not is_a_sentence(text)}


def is_a_sentence(text):
    return text[:1].isupper() and text.endswith(".") and len(text.split()) >= 4


def test_the_schema_explains_every_key_of_the_experiment(definitions):
    assert set(definitions["Experiment"]["properties"]) == set(Experiment.__struct_fields__)
    assert unexplained(definitions["Experiment"]["properties"]) == {}


def test_the_schema_explains_every_key_of_every_workload(definitions):
    entries = definitions["Experiment"]["properties"]["cases"]["items"]["anyOf"]
    assert [entry["title"] for entry in entries] == [f"workload {n}" for n in workload_names()]
    for entry in entries:
        assert unexplained(entry["properties"]) == {}, entry["title"]


@pytest.mark.parametrize("name", backend_names())
def test_the_schema_explains_every_option_of_every_backend(definitions, name):
    options = definitions[f"{name}-options"]["properties"]
    assert set(options) == set(backend_class(name).options_type.__struct_fields__)
    assert unexplained(options) == {}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_only_keys_are_described(record):
    assert set(field_descriptions(record)) <= set(record.__struct_fields__)


def test_the_terminal_shows_the_same_sentences():
    told = pffbench_here("keys", *workload_names(), *backend_names()).stdout
    common = pffbench_here("keys").stdout
    text = " ".join((told + common).split())
    for name in workload_names():
        for key in keys_of(workload(name).parameters_type):
            assert key.meaning in text, key.name
    for name in backend_names():
        for key in keys_of(backend_class(name).options_type):
            assert key.meaning in text, key.name


def test_a_comment_describes_the_fields_directly_below_it():
    class Base:
        #: From the ``base``.
        inherited: int

    class Sample(Base):
        """A record."""

        #: Both of
        #: these.
        first: int
        second: Annotated[
            int,
            "third: not a field",
        ] = 0
        undescribed = 1

        #: One `letter`.
        #:
        #: And more.
        # Why it is here.
        third: str

        not_described: int
        #: Shared by all, so not a field.
        shared: ClassVar[int] = 0

        def method(self, argument: int) -> int:
            #: A comment in a method.
            return argument

    assert field_descriptions(Sample) == {
        "inherited": "From the `base`.", "first": "Both of these.", "second": "Both of these.",
        "third": "One `letter`. And more.",
    }  # fmt: skip


def test_a_record_made_without_source_has_no_descriptions():
    assert field_descriptions(msgspec.defstruct("Made", [("field", int)])) == {}
