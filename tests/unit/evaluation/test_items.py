"""Data sets: what is read, in which formats, and what is said about rows that cannot be used."""

from __future__ import annotations

import csv
import gzip
import json
import threading

import pytest

from guardrail.errors import ConfigurationError, InputError, MissingExtraError
from guardrail.evaluation.datasets.items import Items
from guardrail.evaluation.datasets.items.rows import read_rows

ROWS = [
    {
        "id": "a",
        "question": "When?",
        "context": ["It opens at ten.", "Entry is free."],
        "answer": "At ten.",
        "label": 1,
    },
    {"id": "b", "question": "Where?", "context": ["Round the corner; “left”, then\nright."], "answer": 'L,\n"R"'},
    {"id": "c", "context": ["Über 40 Säugetiere"], "answer": "Viele.", "label": 0},
]


def write(path, rows):
    name = path.name.lower()
    opener = gzip.open if name.endswith(".gz") else open
    if ".parquet" in name:
        import pyarrow as pa
        from pyarrow import parquet

        parquet.write_table(pa.Table.from_pylist(rows), path, row_group_size=2)
    elif ".jsonl" in name:
        with opener(path, "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    else:
        columns = list(dict.fromkeys(key for row in rows for key in row))
        with opener(path, "wt", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            for row in rows:
                cells = [row.get(name) for name in columns]
                writer.writerow([json.dumps(c) if isinstance(c, (list, dict)) else c for c in cells])
    return path


def read(path, **options):
    with Items(path, **options) as items:
        survey = items.survey()
        found = list(items)
        assert survey.items == len(found)
        return found


def texts(item):
    return [passage.text for passage in item.context]


@pytest.mark.parametrize("name", ["d.jsonl", "d.jsonl.gz", "d.csv", "d.csv.gz", "d.parquet", "D.JSONL.GZ"])
def test_every_format_gives_the_same_items(tmp_path, name):
    found = read(write(tmp_path / name, ROWS))
    assert [item.id for item in found] == ["a", "b", "c"]
    assert [item.question for item in found] == ["When?", "Where?", ""]
    assert [item.answer for item in found] == ["At ten.", 'L,\n"R"', "Viele."]
    assert [item.label for item in found] == [True, None, False]
    assert list(map(texts, found)) == [row["context"] for row in ROWS]
    assert all(item.answered for item in found)


@pytest.mark.parametrize("name", ["d.jsonl", "d.csv", "d.parquet"])
@pytest.mark.parametrize(
    "names",
    [
        {"question": "user_input", "context": "retrieved_contexts", "answer": "response"},
        {"question": "query", "context": "documents", "answer": "claim"},
        {"question": "input", "context": "retrieval_context", "answer": "actual_output"},
        {"question": "question", "context": "contexts", "answer": "answer"},
    ],
)
def test_the_names_of_other_tools_are_known(tmp_path, name, names):
    (found,) = read(write(tmp_path / name, [{names.get(key, key): value for key, value in ROWS[0].items()}]))
    assert (found.question, found.answer, texts(found)) == ("When?", "At ten.", ROWS[0]["context"])


@pytest.mark.parametrize("name", ["d.jsonl", "d.csv", "d.parquet"])
def test_fields_can_be_named(tmp_path, name):
    row = {"uid": "x", "asked": "Q?", "docs": ["One."], "mine": "A.", "answer": "expected", "ok": 0}
    fields = {"id": "uid", "question": "asked", "context": "docs", "label": "ok"}
    (found,) = read(write(tmp_path / name, [row]), answers="mine", fields=fields)
    assert (found.id, found.question, texts(found), found.answer, found.label) == ("x", "Q?", ["One."], "A.", False)


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ("One text.", [("1", "One text.")]),
        (["One.", "Two."], [("1", "One."), ("2", "Two.")]),
        ([{"id": "p7", "text": "Seven."}, {"text": "No id."}], [("p7", "Seven."), ("2", "No id.")]),
        ([{"page_content": "A document."}], [("1", "A document.")]),
        ([None, "Two."], [("2", "Two.")]),
        ('[{"name": "Desk", "opens": 10}]', [("1", '[{"name": "Desk", "opens": 10}]')]),
        ("[1] A text, not a list [2]", [("1", "[1] A text, not a list [2]")]),
    ],
)
@pytest.mark.parametrize("name", ["d.jsonl", "d.csv"])
def test_a_context_is_a_text_or_passages(tmp_path, name, context, expected):
    (found,) = read(write(tmp_path / name, [{"context": context, "answer": "A."}]))
    assert [(passage.id, passage.text) for passage in found.context] == expected


def test_a_context_may_be_one_passage(tmp_path):
    row = {"context": {"id": "p", "text": "Alone."}, "answer": "A."}
    (found,) = read(write(tmp_path / "d.jsonl", [row]))
    assert [(passage.id, passage.text) for passage in found.context] == [("p", "Alone.")]


def test_parquet_has_passages_with_ids(tmp_path):
    row = {"context": [{"id": "p7", "text": "Seven."}, {"id": "p8", "text": "Eight."}], "answer": "A."}
    (found,) = read(write(tmp_path / "d.parquet", [row]))
    assert [(passage.id, passage.text) for passage in found.context] == [("p7", "Seven."), ("p8", "Eight.")]


@pytest.mark.parametrize(
    "cell",
    [
        "['It is Ann\\'s.', 'Two.']",
        "[\"It is Ann's.\" 'Two.']",
        "[\"It is Ann's.\"\n 'Two.']",
        '["It is Ann\'s.", "Two."]',
    ],
)
def test_a_list_in_a_csv_cell_may_be_written_by_json_python_or_numpy(tmp_path, cell):
    (found,) = read(write(tmp_path / "d.csv", [{"context": cell, "answer": "A."}]))
    assert texts(found) == ["It is Ann's.", "Two."]


@pytest.mark.parametrize(
    ("mark", "header"), [(";", "context;answer"), ("\t", "context\tanswer"), (",", "context,answer")]
)
def test_csv_is_separated_as_its_header_is(tmp_path, mark, header):
    path = tmp_path / "d.csv"
    path.write_text(f'\ufeff{header}\r\n"One, two; three\t"{mark}A.\r\n\r\n', encoding="utf-8")
    (found,) = read(path)
    assert (texts(found), found.answer) == (["One, two; three\t"], "A.")


def test_a_csv_cell_may_be_longer_than_the_usual_limit(tmp_path):
    usual = csv.field_size_limit()
    (found,) = read(write(tmp_path / "d.csv", [{"context": "word " * 50_000, "answer": "A."}]))
    assert len(texts(found)[0]) == 250_000
    assert csv.field_size_limit() == usual


def test_blank_lines_do_not_count_and_ids_are_row_numbers(tmp_path):
    path = tmp_path / "d.jsonl"
    row = json.dumps({"context": "C.", "answer": "A."})
    path.write_text(f"\ufeff{row}\n\n{row}\n", encoding="utf-8")
    assert [item.id for item in read(path)] == ["1", "2"]


@pytest.mark.parametrize("name", ["d.jsonl", "d.csv", "d.parquet"])
def test_a_missing_answer_is_not_an_empty_one(tmp_path, name):
    rows = [{"context": "C.", "answer": "A."}, {"context": "C.", "answer": None}]
    found = read(write(tmp_path / name, rows))
    assert [(item.answer, item.answered) for item in found] == [("A.", True), ("", False)]


def test_an_empty_answer_is_an_answer(tmp_path):
    rows = [{"context": "C.", "answer": ""}, {"context": "C."}]
    assert [item.answered for item in read(write(tmp_path / "d.jsonl", rows))] == [True, False]


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        (1, True),
        (0, False),
        (True, True),
        ("1", True),
        ("False", False),
        (1.0, True),
        (None, None),
        (float("nan"), None),
    ],
)
def test_labels(tmp_path, label, expected):
    (found,) = read(write(tmp_path / "d.jsonl", [{"context": "C.", "answer": "A.", "label": label}]))
    assert found.label is expected


@pytest.mark.parametrize("name", ["b.jsonl", "b.csv", "b.parquet"])
def test_answers_from_a_second_file_are_found_by_id(tmp_path, name):
    data = write(tmp_path / "d.jsonl", [{**row, "answer": "what was expected", "n": 1} for row in ROWS])
    answers = [{"id": "c", "response": "C!"}, {"id": "a", "response": "A!"}, {"id": "z", "response": "Z!"}]
    path = write(tmp_path / name, answers)
    for given in (path, str(path)):
        with Items(data, answers=given) as items:
            survey = items.survey()
            assert [(item.answer, item.answered) for item in items] == [("A!", True), ("", False), ("C!", True)]
            assert survey.unused_answers == 1
            assert survey.identity["answers"]["name"] == name


def test_numbers_as_ids_are_the_same_in_both_files(tmp_path):
    data = write(tmp_path / "d.jsonl", [{"id": 7, "context": "C."}])
    assert read(data, answers=write(tmp_path / "b.csv", [{"id": "7", "answer": "A!"}]))[0].answer == "A!"


def test_limit_takes_the_first_items(tmp_path):
    assert [item.id for item in read(write(tmp_path / "d.parquet", ROWS), limit=2)] == ["a", "b"]


def test_what_is_needed_of_a_parquet_file_is_read(tmp_path):
    path = write(tmp_path / "d.parquet", [{"a": 1, "b": 2}])
    assert [row.values for row in read_rows(path, wanted={"b"})] == [{"b": 2}]


def test_a_changed_file_is_noticed(tmp_path):
    path = write(tmp_path / "d.jsonl", ROWS)
    with Items(path) as items:
        before = items.survey()
        items.check_unchanged()
        write(path, ROWS[:2])
        with pytest.raises(InputError, match="was changed while it was read"):
            items.check_unchanged()
    with Items(path) as items:
        assert items.survey().identity["file"]["sha256"] != before.identity["file"]["sha256"]


def test_a_survey_can_be_ended(tmp_path):
    stop = threading.Event()
    stop.set()

    def check():
        if stop.is_set():
            raise KeyboardInterrupt

    with Items(write(tmp_path / "d.jsonl", ROWS)) as items, pytest.raises(KeyboardInterrupt):
        items.survey(check)


GOOD = '{"context": "C.", "answer": "A."}\n'


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("d.jsonl", "", "holds no items"),
        ("d.csv", "", "holds no items"),
        ("d.csv", "context,answer\n", "holds no items"),
        ("d.jsonl", GOOD + "{", "line 2: is not JSON"),
        ("d.jsonl", "[" * 100_000, "line 1: is not JSON"),
        ("d.jsonl", GOOD + "[1]", "line 2: each line must be one JSON object, not list"),
        ("d.jsonl", GOOD + '{"context": "C.", "answer": 5}', "line 2: the answer must be a text, not int"),
        ("d.jsonl", '{"context": "C.", "answer": "A.", "question": []}', "line 1: the question must be a text"),
        ("d.jsonl", '{"context": 5, "answer": "A."}', "line 1: the context must be a text, or a list"),
        ("d.jsonl", '{"context": [5], "answer": "A."}', "line 1: the context must be a text, or a list"),
        ("d.jsonl", '{"context": "C.", "answer": "A.", "label": 2}', "line 1: the label must be 1"),
        ("d.jsonl", '{"context": "C.", "answer": "A.", "label": []}', "line 1: the label must be 1"),
        ("d.jsonl", '{"context": "C.", "answer": "A.", "id": 1.5}', "line 1: the id must be a text or a whole number"),
        (
            "d.jsonl",
            '{"context": "C.", "answer": "A.", "response": "B."}',
            "answer and response could each be the answer",
        ),
        ("d.jsonl", '{"context": "C.", "contexts": ["D."], "answer": "A."}', "--field context=NAME"),
        ("d.jsonl", '{"context": "C."}', "has one of answer, response, claim, actual_output that is not empty"),
        ("d.jsonl", '{"answer": "A."}', "name its field: --field context=NAME"),
        ("d.csv", "context,answer\nC.,A.,more\n", "line 2: has 3 cells and the header 2"),
        ("d.csv", 'context,answer\n"C.\nD.",A.\nonly\n', "line 4: has 1 cells and the header 2"),
        ("d.csv", 'context,answer\n"C." x,A.\n', "line 2: is not CSV"),
        ("d.csv", 'context,answer\n"C.,A.\n', "line 2: is not CSV"),
        ("d.csv", "context,answer,answer\nC.,A.,B.\n", "two columns are called 'answer'"),
        ("d.csv", b"context,answer\n\xff,A.\n", "line 2: is not UTF-8"),
        ("d.jsonl", b'{"context": "\xff", "answer": "A."}', "line 1: is not UTF-8"),
        ("d.jsonl.gz", b"not gzip", "cannot read"),
        ("d.csv.gz", b"not gzip", "cannot read"),
        ("d.parquet", b"not parquet", "is it a whole Parquet file"),
        ("d.txt", "", "its name must end in one of .jsonl, .jsonl.gz, .csv, .csv.gz, .parquet"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_place(tmp_path, name, content, said):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with Items(path) as items, pytest.raises(InputError) as caught:
        items.survey()
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


def test_parquet_without_the_fields_is_refused(tmp_path):
    with Items(write(tmp_path / "d.parquet", [{"a": 1}])) as items, pytest.raises(InputError, match="no item"):
        items.survey()


def test_a_field_that_no_row_has_is_named(tmp_path):
    path = write(tmp_path / "d.jsonl", ROWS)
    with Items(path, answers="reponse") as items, pytest.raises(InputError, match="has a field 'reponse'"):
        items.survey()


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"answer": "A."}], "line 1: has no id"),
        ([{"id": "a", "answer": "A."}, {"id": "a", "answer": "B."}], "line 2: there is an answer with the id"),
        ([{"id": "z", "answer": "A."}], "their ids must be equal"),
        ([{"id": "a", "answer": ["A."]}], "line 1: the answer must be a text"),
    ],
)
def test_an_answers_file_that_cannot_be_used(tmp_path, rows, said):
    data, answers = write(tmp_path / "d.jsonl", ROWS), write(tmp_path / "b.jsonl", rows)
    with Items(data, answers=answers) as items, pytest.raises(InputError, match=said):
        items.survey()


def test_files_that_are_not_there(tmp_path):
    with Items(tmp_path / "no.jsonl") as items, pytest.raises(InputError, match="cannot be read"):
        items.survey()
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises(InputError, match="this is a folder"):
        next(iter(Items(tmp_path / "folder.jsonl")))
    with pytest.raises(InputError, match="no such file with answers"):
        Items(tmp_path / "no.jsonl", answers="other.csv")


@pytest.mark.parametrize("fields", [{"title": "x"}, {"context": ""}, {"context": 5}])
def test_unknown_parts_are_refused(tmp_path, fields):
    with pytest.raises(ConfigurationError):
        Items(tmp_path / "d.jsonl", fields=fields)


def test_parquet_without_pyarrow_names_the_extra(tmp_path, monkeypatch):
    path = write(tmp_path / "d.parquet", ROWS)
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with Items(path) as items, pytest.raises(MissingExtraError, match=r"guardrail-stream\[evaluate\]"):
        items.survey()


def test_half_a_surrogate_pair_does_not_stop_anything(tmp_path):
    path = tmp_path / "d.jsonl"
    path.write_text('{"id": "\\ud800", "context": "C.", "answer": "A \\ud800"}\n', encoding="utf-8")
    (found,) = read(path)
    assert found.answer.encode()
    assert found.id.encode()
