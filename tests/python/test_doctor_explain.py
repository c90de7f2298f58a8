# SPDX-License-Identifier: Apache-2.0
"""`stoker explain`: every code, by code and by name; and the table in docs/."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from packing import stoker

ROOT = Path(__file__).parents[2]


def test_all_codes_are_listed_with_their_titles():
    rules = json.loads(stoker("explain", "--json").stdout)
    lines = stoker("explain").stdout.splitlines()
    assert len(rules) == len(lines) >= 35
    for rule, line in zip(rules, lines):
        assert line.split(maxsplit=2) == [rule["code"], rule["name"], rule["title"]]


def test_each_is_explained_by_code_and_by_name():
    for rule in json.loads(stoker("explain", "--json").stdout):
        assert all(rule[key] for key in ("symptoms", "why", "fix_torch", "fix_stoker", "how_to_check"))
        text = stoker("explain", rule["code"].lower()).stdout
        assert text == stoker("explain", rule["name"]).stdout
        assert rule["title"] in text and max(map(len, text.splitlines())) <= 100
        words = " ".join(text.split())
        for key in ("symptoms", "why", "fix_torch", "fix_stoker", "how_to_check"):
            assert " ".join(rule[key].split()) in words
        assert json.loads(stoker("explain", rule["code"], "--json").stdout) == rule


@pytest.mark.parametrize("word, near", [("ST2O6", "ST206"), ("thread-strom", "thread-storm"), ("gli", "gil")])
def test_a_mistyped_name_is_met_with_the_nearest(word, near):
    done = stoker("explain", word)
    assert done.returncode == 2 and f"Did you mean '{near}'?" in done.stderr


@pytest.mark.parametrize("arguments", [["nothing-like-it"], ["ST206", "ST207"], ["--jsn"], ["--markdown", "ST206"]])
def test_what_makes_no_sense_is_refused(arguments):
    done = stoker("explain", *arguments)
    assert done.returncode == 2 and done.stderr.startswith("stoker: ") and not done.stdout


def test_the_table_in_docs_is_up_to_date():
    table = (ROOT / "docs" / "doctor-codes.md").read_text()
    assert table == stoker("explain", "--markdown").stdout, "stoker explain --markdown > docs/doctor-codes.md"
