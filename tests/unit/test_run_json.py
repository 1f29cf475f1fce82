"""`run.json` as it is written."""

import json
from copy import deepcopy

import msgspec
import pytest

from pffbench.text import escaped
from timed_runs import CASES, a_record

#: What JSON writers write in different ways: small and large numbers, text beyond ASCII.
VALUES = [1e-05, 1e22, 0.1, 2**70, "é 🙂", "\udcff", {"7": [], "x": {}}, None]


def whole(record):
    """Return the text of a record that is encoded in one piece."""
    data = msgspec.to_builtins(record)
    if "\\ud" in json.dumps(data):
        data = escaped(data)
    return json.dumps(data, indent=1) + "\n"


@pytest.mark.parametrize("value", VALUES, ids=ascii)
def test_a_change_of_any_part_is_in_the_next_file(tmp_path, value):
    record = a_record(deepcopy(CASES))
    record.save(tmp_path)
    first, *_, last = record.cases.values()
    last.options["new"] = value
    first.notes.append("a note")
    record.provenance["found"] = value
    del record.cases[list(record.cases)[1]]
    record.save(tmp_path)
    assert (tmp_path / "run.json").read_text() == whole(record)


def test_no_file_holds_what_json_has_not(tmp_path):
    record = a_record(CASES)
    record.provenance["found"] = None
    record.save(tmp_path)
    record.provenance["found"] = float("nan")
    with pytest.raises(ValueError, match="JSON"):
        record.save(tmp_path)
