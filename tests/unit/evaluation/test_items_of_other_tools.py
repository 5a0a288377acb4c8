"""Data sets as other tools write them: the same items whatever the format, and errors that name what to change."""

from __future__ import annotations

import csv
import gzip
import json
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardrail.errors import ConfigurationError, InputError
from guardrail.evaluation.datasets.items import Items
from guardrail.evaluation.datasets.items.answers import AnswerIndex
from guardrail.evaluation.datasets.items.fields import FieldNames
from tests.data_sets import ROWS, run_all, save


@pytest.fixture
def data(tmp_path):
    return save(tmp_path / "data.jsonl", ROWS)


def read(path, **options):
    with Items(path, **options) as items:
        items.survey()
        return list(items)


def passages(item):
    return [(passage.id, passage.text) for passage in item.context]


@pytest.mark.parametrize("label", ["1.0", "0.0", " True ", "1"])
def test_labels_of_a_column_of_numbers_with_gaps(tmp_path, label):
    (tmp_path / "d.csv").write_text(f"context,answer,label\nC.,A.,{label}\nC.,A.,\n", encoding="utf-8")
    assert [item.label for item in read(tmp_path / "d.csv")] == [label != "0.0", None]


def test_numbers_of_a_parquet_file(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    columns = {"id": [7.0, None], "label": [Decimal("1"), None], "context": ["C.", "C."], "answer": ["A.", "A."]}
    parquet.write_table(pa.table(columns), tmp_path / "d.parquet")
    assert [(item.id, item.label) for item in read(tmp_path / "d.parquet")] == [("7", True), ("2", None)]


@pytest.mark.parametrize(
    "cell",
    [
        '{"id": "p7", "text": "It is Ann\'s."}',
        ' {"id": "p7", "page_content": "It is Ann\'s."}\n',
        "{'id': 'p7', 'text': \"It is Ann's.\"}",
        "[{'id': 'p7', 'text': \"It is Ann's.\"}]",
        ' [{"id": "p7", "text": "It is Ann\'s."}] ',
    ],
)
def test_a_passage_in_a_csv_cell(tmp_path, cell):
    quoted = cell.replace('"', '""')
    (tmp_path / "d.csv").write_text(f'context,answer\n"{quoted}",A.\n', encoding="utf-8")
    assert passages(*read(tmp_path / "d.csv")) == [("p7", "It is Ann's.")]


@pytest.mark.parametrize(
    ("cell", "detail"), [('{"model": "m", "n": 1}', {"model": "m", "n": 1}), ("[1]", {}), ("{", {})]
)
def test_a_detail_in_a_csv_cell(tmp_path, cell, detail):
    quoted = cell.replace('"', '""')
    (tmp_path / "d.csv").write_text(f'context,answer,detail\nC.,A.,"{quoted}"\n', encoding="utf-8")
    assert read(tmp_path / "d.csv")[0].detail == detail


def test_an_array_of_passages_in_a_csv_cell(tmp_path):
    import pandas
    import pyarrow as pa
    from pyarrow import parquet

    context = [{"id": "p7", "text": "It is {Ann's} {Bob's}."}, {"id": "p8", "text": 'Or "not"\n?'}]
    parquet.write_table(pa.Table.from_pylist([{"context": context, "answer": "A."}]), tmp_path / "d.parquet")
    pandas.read_parquet(tmp_path / "d.parquet").to_csv(tmp_path / "d.csv", index=False)
    assert passages(*read(tmp_path / "d.csv")) == passages(*read(tmp_path / "d.parquet"))


@pytest.mark.parametrize("cell", ["{a}", "[b c]", "{'text': 1} x", "[f'abc']", "['a' # x\n]", '{"answer": 5}', "{}"])
def test_a_text_with_brackets_stays_a_text(tmp_path, cell):
    quoted = cell.replace('"', '""')
    (tmp_path / "d.csv").write_text(f'context,answer\n"{quoted}",A.\nC.,A.\n', encoding="utf-8")
    found = [text for _, text in passages(read(tmp_path / "d.csv")[0])]
    assert found == ([cell] if any(map(str.isalnum, cell)) else [])


@pytest.mark.parametrize("name", ["d.csv", "d.csv.gz", "d.jsonl"])
def test_the_line_that_is_not_utf8_is_named(tmp_path, name):
    raw = "context,answer\nC.,A.\nC.,café\n".encode("cp1252")
    if name == "d.jsonl":
        raw = b'{"context": "C.", "answer": "A."}\n\n{"context": "caf\xe9"}\n'
    (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    with pytest.raises(InputError, match=r"line 3: is not UTF-8 \(byte 0xe9\); convert the file"):
        read(tmp_path / name)


def test_parquet_texts_that_are_not_utf8(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    bad = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff\xfe"]).buffers())
    parquet.write_table(pa.table({"context": ["C."], "answer": bad}), tmp_path / "d.parquet")
    with pytest.raises(InputError, match=r"cannot read .*d\.parquet, after row 0: UnicodeDecodeError"):
        read(tmp_path / "d.parquet")


def test_two_parquet_columns_of_one_name(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    columns = [pa.array(["C."]), pa.array(["A."]), pa.array(["B."])]
    parquet.write_table(pa.Table.from_arrays(columns, names=["context", "answer", "answer"]), tmp_path / "d.parquet")
    with pytest.raises(InputError, match="two columns are called 'answer'"):
        read(tmp_path / "d.parquet")


def test_an_answers_file_of_another_kind_is_not_a_field(data, tmp_path):
    (tmp_path / "answers.json").write_text("[]", encoding="utf-8")
    with pytest.raises(InputError, match=r"answers\.json: cannot tell what is in it; its name must end in"):
        run_all(data, tmp_path / "out.jsonl", answers=str(tmp_path / "answers.json"))


def test_the_field_with_the_answers_is_named_once(data, tmp_path):
    with pytest.raises(ConfigurationError, match="two fields with the answers are named, 'answer' and 'other'"):
        run_all(data, tmp_path / "out.jsonl", answers="answer", fields={"answer": "other"})


def test_an_answers_file_without_ids_says_where_they_were_looked_for(tmp_path):
    data = save(tmp_path / "d.jsonl", [{"uid": "a", "context": "C."}])
    answers = save(tmp_path / "b.jsonl", [{"id": "a", "answer": "A."}])
    with pytest.raises(InputError, match=r"line 1: has no id \(field 'uid'\)"):
        read(data, answers=answers, fields={"id": "uid"})


@pytest.mark.parametrize("name", ["x" * 300 + ".jsonl", "a\0b.jsonl"])
def test_names_that_no_file_can_have(data, tmp_path, name):
    with pytest.raises(InputError, match="cannot be written"):
        run_all(data, tmp_path / name)
    with pytest.raises(InputError, match="cannot be read"):
        run_all(tmp_path / name, tmp_path / "out.jsonl")
    with pytest.raises(InputError, match="there is no such file"):
        run_all(data, tmp_path / "out.jsonl", answers=str(tmp_path / name))


def test_answers_that_do_not_fit_on_the_disk(tmp_path):
    answers = save(tmp_path / "b.jsonl", [{"id": str(n), "answer": "x" * 5_000} for n in range(50)])
    index = AnswerIndex(answers, FieldNames())
    index._database.execute("PRAGMA max_page_count = 20")
    with pytest.raises(InputError, match=r"b\.jsonl: its answers do not fit .*full.*SQLITE_TMPDIR"):
        index.load(lambda: None)
    index.close()


_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
_PASSAGES = st.lists(
    st.fixed_dictionaries({"text": _TEXTS}, optional={"id": _TEXTS}) | st.none() | _TEXTS,
    max_size=3,
)
_ROWS = st.fixed_dictionaries(
    {"answer": _TEXTS | st.none()},
    optional={
        "id": _TEXTS | st.integers(-9, 10**30) | st.none(),
        "question": _TEXTS | st.none(),
        "context": _PASSAGES | _TEXTS.filter(lambda text: text.strip()[:1] not in ("[", "{")) | st.none(),
        "label": st.booleans() | st.sampled_from([0, 1, 0.0, 1.0, None]),
        "detail": st.dictionaries(_TEXTS, st.integers() | _TEXTS, max_size=2),
    },
)


@settings(max_examples=150, deadline=None)
@given(rows=st.lists(_ROWS, min_size=1, max_size=4))
def test_json_lines_and_csv_say_the_same_of_any_row(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("rows")
    rows.append({"context": "C.", "answer": "A."})
    with open(folder / "d.csv", "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        columns = ["id", "question", "context", "answer", "label", "detail"]
        table.writerow(columns)
        for row in rows:
            cells = [row.get(name) for name in columns]
            table.writerow([json.dumps(cell) if isinstance(cell, (list, dict)) else cell for cell in cells])
    assert read(folder / "d.csv") == read(save(folder / "d.jsonl", rows))


@settings(max_examples=100, deadline=None)
@given(rows=st.lists(_ROWS, min_size=1, max_size=4))
def test_json_lines_and_parquet_say_the_same_of_any_row(tmp_path_factory, rows):
    import pyarrow as pa
    from pyarrow import parquet

    folder = tmp_path_factory.mktemp("rows")
    passage = pa.struct([("id", pa.string()), ("text", pa.string())])
    kinds = {"id": pa.string(), "question": pa.string(), "answer": pa.string(), "label": pa.float64()}
    same = []
    for row in [*rows, {"context": "C.", "answer": "A."}]:
        context = row.get("context")
        texts = [context] if isinstance(context, str) else context or []
        parts = [{"text": part} if isinstance(part, str) else part for part in texts]
        number = row.get("id")
        same.append({**row, "context": parts, "id": None if number is None else str(number), "detail": None})
    schema = pa.schema([*kinds.items(), ("context", pa.list_(passage))])
    columns = {name: [row.get(name) for row in same] for name in schema.names}
    columns["label"] = [None if label is None else float(label) for label in columns["label"]]
    parquet.write_table(pa.table(columns, schema=schema), folder / "d.parquet")
    found, expected = read(folder / "d.parquet"), read(save(folder / "d.jsonl", same))
    for one, other in zip(found, expected, strict=True):
        assert passages(one) == passages(other)
        assert (one.id, one.question, one.answer, one.answered, one.label) == (
            other.id, other.question, other.answer, other.answered, other.label
        )  # fmt: skip
