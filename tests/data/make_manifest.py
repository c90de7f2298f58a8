"""Tables, written by csv and json, and the files that they name."""

import csv
import gzip
import io
import json

from expected import ECORRUPT, EINVAL, expect, folder, jpeg, piece, refused


def manifests():
    out = folder("manifest")
    files = {"a.jpg": jpeg("a"), "b c.jpg": jpeg("b"), "in/d,e.jpg": jpeg("d"), 'in/"q".jpg': jpeg("q")}
    for name, data in files.items():
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_bytes(data)
    table = [  # path, label, weight, words, boxes
        ("a.jpg", "dog", "0.5", "plain", "[1, 2]"), ("b c.jpg", "cat", "-1e3", "two\nlines, and a \"quote\"", "{}"),
        ("in/d,e.jpg", "dog", "7", "", '{"a": [1, {"b": null}]}'), ('in/"q".jpg', "gr\u00f6\u00dfer", "0", " blanks ", "3"),
    ]
    names = ["path", "label", "weight", "words", "boxes"]
    classes = sorted({row[1] for row in table})

    def lines(columns, kinds=()):
        result = []
        for row in table:
            values = dict(zip(names, row))
            made = {"path": piece("path", files[row[0]], "image"), "label": piece("label", classes.index(row[1]), "int"),
                    "weight": piece("weight", float(row[2]), "float"), "words": piece("words", row[3]),
                    "boxes": piece("boxes", values["boxes"], "json")}
            result.append([made[c] for c in columns])
        return result

    every = "path,label,weight,words,boxes=json"

    def write(name, text, columns=names, fields=every, scheme="csv", note=None):
        data = text if isinstance(text, bytes) else text.encode()
        (out / name).write_bytes(data)
        expect(out / f"{name}.expect", f"{scheme}:{name}", lines(columns), fields,
               classes if "label" in columns else ())

    def as_csv(delimiter=",", end="\r\n", quoting=csv.QUOTE_MINIMAL):
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=quoting)
        writer.writerows([names] + table)
        return text.getvalue()

    write("crlf.csv", as_csv())
    write("lf.csv", as_csv(end="\n"), scheme="auto")
    write("quoted.csv", as_csv(quoting=csv.QUOTE_ALL).rstrip(), scheme="auto")
    write("mark.csv", b"\xef\xbb\xbf" + as_csv().encode())
    write("blank_lines.csv", as_csv(end="\n").replace("\nb c", "\n\n\nb c") + "\n\n")
    write("tabs.tsv", as_csv("\t"), scheme="auto")
    write("turned.csv", as_csv(), ["words", "path"], "words,path=image")
    write("usual.csv", as_csv(), ["path", "label"], "-", "auto")
    write("packed.csv.gz", gzip.compress(as_csv().encode(), mtime=0), scheme="auto")
    objects = [dict(zip(names, row)) for row in table]
    for row in objects:
        row["weight"] = float(row["weight"])
        row["boxes"] = json.loads(row["boxes"])
        row["more"] = {"nested": [True, None, "\u20ac"], "deep": [[[]]]}
    write("lines.jsonl", "\n".join(json.dumps(row) for row in objects), scheme="auto")
    write("unicode.jsonl", "\n\n".join(json.dumps(row, ensure_ascii=False) for row in objects) + "\r\n", scheme="jsonl")
    whole = [dict(row, label=i * 5 - 1, ok=i % 2 == 0) for i, row in enumerate(objects)]
    (out / "whole.jsonl").write_text("\n".join(json.dumps(row) for row in whole))
    expect(out / "whole.expect", "jsonl:whole.jsonl",
           [[piece("path", files[r["path"]], "image"), piece("label", r["label"], "int"), piece("ok", int(r["ok"]), "int")]
            for r in whole], "path,label,ok")

    def bad(name, text, words, code=ECORRUPT, fields="path,label"):
        (out / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        refused(out / f"{name}.expect", f"{name.split('.')[-1]}:{name}", code, words, fields)

    def partly(name, text, errors, fields="path,label", kind="int"):
        """Damaged rows are bad samples; all others are a.jpg with 1."""
        bad(name, text, "", fields=fields)
        row = [piece("path", files["a.jpg"], "image"), piece("label", 1, kind)]
        expect(out / f"{name}.expect", f"{name.split('.')[-1]}:{name}",
               [[f"error {ECORRUPT} {words}"] if words else row for words in errors], fields)

    head = "path,label\n"
    bad("empty.csv", "", "is empty", EINVAL)
    partly("short_row.csv", head + "a.jpg,1\n\na.jpg\na.jpg,1\n", [None, "line 4: has 1 word, but the first line has 2", None])
    partly("long_row.csv", head + '"a.jpg",1\na.jpg,1,2\n', [None, "line 3: has 3 words"])
    partly("open_quote.csv", head + 'a.jpg,1\n"a.jpg,1\na.jpg,1\n', [None, "line 3: unclosed quote", None])
    partly("open_later.csv", head + 'a.jpg,1\n"a\n""b\na.jpg,1\n',
           [None, "line 3: unclosed quote", "line 4: unexpected characters between", None])
    partly("behind_lines.csv", head + '"a\nb"x,1\na.jpg,1\n', ["line 2: unexpected characters between", None])
    bad("open_head.csv", '"path,label\na.jpg,1\n', "line 1: unclosed quote")
    bad("behind_quote.csv", head + '"a".jpg,1\n', "line 2: unexpected characters between")
    bad("zero.csv", head + "a\0.jpg,1\n", "line 2: contains a NUL byte")
    partly("zero_row.csv", head + "a\0.jpg,1\na.jpg,1\n", ["line 2: contains a NUL byte", None])
    partly("no_path.csv", head + "a.jpg,1\n,1\n", [None, "line 3: path is missing"])
    bad("twins.csv", "path,label,label\na,1,1\n", "two columns are named label")
    bad("no_column.csv", "path,x\na,1\n", "there is no column label", EINVAL)
    partly("no_number.csv", head + "a.jpg,1\na.jpg,one\n\"a\n", [None, "line 3: label is 'one', not a number", "line 4: unclosed quote"],
           "path,label=float", "float")
    bad("no_numbers.csv", head + "a.jpg,one\n\"a\n", "line 2: label is 'one', not a number", fields="path,label=float")
    bad("no_usual.csv", "x,y\n1,2\n", "select the columns with fields", EINVAL, "-")
    good = '{"path": "a.jpg", "label": 1}\n'
    partly("broken.jsonl", good + '{"path": "a.jpg", "label": }\n' + good, [None, "line 2: not a JSON object", None])
    partly("broken_first.jsonl", "\n{\n}}\n" + good, ["line 2: not a JSON object", "line 3: not a JSON object", None], "-")
    partly("half_pair.jsonl", '{"path": "a.jpg", "label": 1, "x": "\\ud800"}\n', [None])
    bad("zero_escape.jsonl", '{"path": "a\\u0000", "label": 1}\n', "line 1: path contains \\u0000")
    bad("deep.jsonl", '{"path": "a.jpg", "label": 1, "x": ' + "[" * 5000 + "]" * 5000 + "}\n", "line 1: JSON nested more than")
    partly("missing.jsonl", good + '\n{"path": "a.jpg", "label": null}\n', [None, "line 3: label is missing"])
    bad("list.jsonl", '["a.jpg", 1]\n', "line 1: not a JSON object")
