"""`guardrail check`: what it prints, and how it ends."""

from __future__ import annotations

import io
import json
import math
import subprocess
import sys

import pytest

from guardrail.cli import main

CONTEXT = "The desk opens at ten. Entry is free on Mondays."
GOOD = "The desk opens at ten."
BAD = "The desk opens at ten. Entry costs 90 euro on Mondays."

KEYS = {
    "accepted", "formula", "policy", "delta_r", "worst_delta_r", "rouge_l", "rouge_1", "rouge_2", "entailment",
    "faithfulness", "claims",
}  # fmt: skip
CLAIM_KEYS = {
    "text", "start", "end", "kind", "verdict", "delta_r", "rouge_l", "entailment", "contradiction", "evidence",
    "language", "citations",
}  # fmt: skip


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def write(**texts):
        for name, text in texts.items():
            path = tmp_path / name.replace("_", ".")
            path.write_bytes(text if isinstance(text, bytes) else text.encode())

    write(good_txt=GOOD, bad_txt=BAD, context_txt=CONTEXT)
    return write


def _json(capsys, *arguments):
    status = main(["check", *arguments, "--json"])
    shown = capsys.readouterr()
    assert shown.err == ""
    return status, json.loads(shown.out)


def _fails(capsys, *arguments):
    assert main(["check", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Traceback" not in shown.err
    return shown.err


@pytest.mark.parametrize(("answer", "status", "word"), [("good.txt", 0, "Accepted"), ("bad.txt", 1, "Rejected")])
def test_the_exit_status_says_whether_the_answer_passes(files, tmp_path, answer, status, word):
    command = [sys.executable, "-m", "guardrail", "check", "--answer", answer, "--context", "context.txt"]
    done = subprocess.run(command, capture_output=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (status, b"")
    assert done.stdout.decode().splitlines()[-1].startswith(f"{word}: worst of")


def test_the_closing_line_names_the_worst_claim(files, capsys):
    main(["check", "--answer", "bad.txt", "--context", "context.txt"])
    shown = capsys.readouterr().out.splitlines()
    assert "#2 “Entry costs 90 euro on Mondays.”" in shown[-1]
    assert "contradicted" in shown[-1] or "unverifiable" in shown[-1]
    assert max(len(line) for line in shown[:-1]) <= 80


def test_the_table_has_a_row_per_segment(files, capsys):
    files(mixed_txt="Hello!\n\nThe desk opens at ten. What else?")
    main(["check", "--answer", "mixed.txt", "--context", "context.txt"])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[2:5]]
    assert [row[0] for row in rows] == ["1", "2", "3"]
    assert [word in row for word, row in zip(["greeting", "supported", "question"], rows, strict=True)] == [True] * 3


def test_no_escape_codes_in_a_pipe(files, capsys):
    main(["check", "--answer", "bad.txt", "--context", "context.txt"])
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize("answer", ["good.txt", "bad.txt"])
@pytest.mark.parametrize("formula", ["evidence", "reference"])
def test_json_has_every_key_and_only_finite_numbers(files, capsys, answer, formula):
    status, found = _json(capsys, "--answer", answer, "--context", "context.txt", "--formula", formula)
    assert found.keys() >= KEYS
    assert status == (0 if found["accepted"] else 1)
    assert found["formula"] == formula
    numbers = [v for v in found.values() if isinstance(v, float)]
    for claim in found["claims"]:
        assert claim.keys() == CLAIM_KEYS
        numbers += [v for v in claim.values() if isinstance(v, float)]
    assert all(math.isfinite(n) and 0 <= n <= 1 for n in numbers)


def test_json_text_is_the_answer_at_its_offsets(files, capsys):
    answer = "  Hello!\r\n\r\n* The desk opens at ten.\n* Entry is free on Mondays. 🎉 Any questions?\n\n"
    files(offsets_txt=answer)
    _, found = _json(capsys, "--answer", "offsets.txt", "--context", "context.txt")
    for claim in found["claims"]:
        assert answer[claim["start"] : claim["end"]] == claim["text"] == claim["text"].strip() != ""
    covered = "".join("".join(claim["text"].split()) for claim in found["claims"])
    assert covered == "".join(answer.split())
    assert {c["kind"] for c in found["claims"] if c["verdict"] is None}.isdisjoint({"claim", "code"})


def test_citations_are_looked_up(files, capsys):
    files(
        cites_txt="The desk opens at ten [2]. Entry is free on Mondays [9]. Entry is free on Mondays.",
        other_txt="Entry is free on Mondays.",
        first_txt="The desk opens at ten.",
    )
    arguments = ["--answer", "cites.txt", "--context", "first.txt", "other.txt"]
    assert main(["check", *arguments]) == 0
    shown = capsys.readouterr().out
    assert "#1 cites [2], which does not say so; cite first.txt" in shown
    assert "#2 cites [9]: there is no such passage" in shown
    assert "#3 cites nothing" in shown
    status, found = _json(capsys, *arguments, "--strict")
    assert (status, found["reason"]) == (1, "claims_failed")
    wrong = {"status": "wrong", "number": 2, "passage": "other.txt", "right": ["first.txt"]}
    assert found["claims"][0]["citations"] == [wrong]
    missing = {"status": "missing", "number": None, "passage": None, "right": ["other.txt"]}
    assert found["claims"][2]["citations"] == [missing]


def test_an_answer_that_cites_nothing_is_not_reproached(files, capsys):
    main(["check", "--answer", "good.txt", "--context", "context.txt"])
    assert "cites" not in capsys.readouterr().out


def test_json_evidence_points_into_the_passage(files, capsys):
    _, found = _json(capsys, "--answer", "good.txt", "--context", "context.txt")
    evidence = found["claims"][0]["evidence"][0]
    assert evidence["passage"] == "context.txt"
    assert CONTEXT[evidence["start"] : evidence["end"]].strip() == GOOD


def test_json_without_claims_has_nulls_instead_of_numbers(files, capsys):
    files(hello_txt="Hello!")
    status, found = _json(capsys, "--answer", "hello.txt", "--context", "context.txt", "--strict")
    assert (status, found["accepted"], found["reason"], found["policy"]) == (1, False, "no_claims", "strict")
    assert (found["delta_r"], found["worst_delta_r"], found["faithfulness"]) == (None, None, 0.0)


def test_the_answer_can_come_from_standard_input(files, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GOOD.encode())))
    status, found = _json(capsys, "--answer", "-", "--context", "context.txt")
    assert (status, found["claims"][0]["text"]) == (0, GOOD)


def test_a_byte_order_mark_is_not_text(files, capsys):
    files(bom_txt=b"\xef\xbb\xbf" + GOOD.encode())
    _, found = _json(capsys, "--answer", "bom.txt", "--context", "context.txt")
    assert found["claims"][0]["text"] == GOOD


def test_jsonl_context_has_a_passage_per_line(files, capsys):
    lines = ['"Entry is free on Mondays."', "", '{"id": "desk", "text": "The desk opens at ten."}', '{"text": "A\\nB"}']
    files(passages_jsonl="\n".join(lines))
    _, found = _json(capsys, "--answer", "good.txt", "--context", "context.txt", "passages.jsonl")
    assert found["accepted"]
    files(only_jsonl=lines[2])
    _, found = _json(capsys, "--answer", "good.txt", "--context", "only.jsonl")
    assert found["claims"][0]["evidence"][0]["passage"] == "desk"
    files(unnamed_jsonl="\n" + '"The desk opens at ten."')
    _, found = _json(capsys, "--answer", "good.txt", "--context", "unnamed.jsonl")
    assert found["claims"][0]["evidence"][0]["passage"] == "unnamed.jsonl:2"


@pytest.mark.parametrize("line", ["{", "3", "null", '{"id": "1"}', '{"text": 5}', "[1]"])
def test_a_bad_line_is_named(files, capsys, line):
    files(lines_jsonl='"The desk opens at ten."\n' + line)
    assert "lines.jsonl, line 2: " in _fails(capsys, "--answer", "good.txt", "--context", "lines.jsonl")


def test_missing_file_is_named(files, capsys):
    assert "nope.txt: there is no such file" in _fails(capsys, "--answer", "nope.txt", "--context", "context.txt")
    assert "gone.txt: there is no such file" in _fails(capsys, "--answer", "good.txt", "--context", "gone.txt")


def test_a_folder_is_not_a_file(files, capsys, tmp_path):
    assert "name a file" in _fails(capsys, "--answer", str(tmp_path), "--context", "context.txt")


def test_a_file_that_is_not_utf8_is_named(files, capsys):
    files(latin_txt="Das Café öffnet um zehn.".encode("latin-1"))
    for arguments in (["good.txt", "--context", "latin.txt"], ["latin.txt", "--context", "context.txt"]):
        said = _fails(capsys, "--answer", *arguments)
        assert "latin.txt: is not UTF-8 (byte 7 is 0xe9)" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--delta", "1.5"], "Policy.delta: must be a number from 0 to 1"),
        (["--delta", "nan"], "Policy.delta: must be a number from 0 to 1"),
        (["--delta", "small"], "--delta"),
        (["--policy", "harsh"], "invalid choice"),
        (["--policy", "lenient", "--strict"], "not allowed with"),
        (["--formula", "rouge"], "invalid choice"),
        (["--frobnicate"], "unrecognized arguments"),
    ],
)
def test_wrong_usage_says_what_to_change(files, capsys, arguments, said):
    assert said in _fails(capsys, "--answer", "good.txt", "--context", "context.txt", *arguments)


def test_standard_input_is_read_once(files, capsys):
    assert "only once" in _fails(capsys, "--answer", "-", "--context", "-")


def test_context_is_required(files, capsys):
    assert "--context" in _fails(capsys, "--answer", "good.txt")


def test_an_empty_context_rejects_every_claim(files, capsys):
    files(empty_txt="  \n")
    status, found = _json(capsys, "--answer", "good.txt", "--context", "empty.txt")
    assert (status, found["reason"], found["context_state"]) == (1, "no_context", "empty")


def test_delta_moves_the_gate(files, capsys):
    files(close_txt="On Mondays, entry to the museum is free.")
    common = ["--answer", "close.txt", "--context", "context.txt"]
    status, found = _json(capsys, *common, "--delta", "1")
    worst = found["worst_delta_r"]
    assert (status, found["delta"]) == (0, 1)
    assert 0 < worst < 1
    assert _json(capsys, *common, "--delta", str(worst - 0.0001))[0] == 1
    assert _json(capsys, *common, "--delta", str(worst + 0.0001))[0] == 0


@pytest.mark.parametrize(
    ("arguments", "policy", "formula", "delta"),
    [
        ([], "balanced", "evidence", None),
        (["--strict"], "strict", "evidence", None),
        (["--policy", "lenient"], "lenient", "evidence", None),
        (["--formula", "reference"], "reference", "reference", 0.15),
        (["--policy", "reference"], "reference", "reference", 0.15),
        (["--policy", "balanced", "--formula", "reference"], "balanced", "reference", 0.15),
        (["--policy", "reference", "--delta", "0.4"], "reference", "reference", 0.4),
    ],
)
def test_policy_and_formula(files, capsys, arguments, policy, formula, delta):
    _, found = _json(capsys, "--answer", "good.txt", "--context", "context.txt", *arguments)
    assert (found["policy"], found["formula"]) == (policy, formula)
    if delta is not None:
        assert found["delta"] == delta


def test_the_reference_formula_closes_with_the_whole_answer(files, capsys):
    assert main(["check", "--answer", "good.txt", "--context", "context.txt", "--formula", "reference"]) == 1
    assert "ΔR of the whole answer is" in capsys.readouterr().out.splitlines()[-1]
