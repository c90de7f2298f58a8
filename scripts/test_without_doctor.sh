#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A build with -Ddoctor=disabled: has all of the program but the doctor's commands, and says so when it is asked for
# them. Speaks TAP.
#   scripts/test_without_doctor.sh BUILD_DIR     the folder of a build with everything, to compare with
source "$(dirname "$0")/common.sh"
WHOLE=$ROOT/$1/cli/stoker
# As deep as the folders of the other builds, so that ccache knows nearly all of it.
DIR=build/without-doctor
PROGRAM=$ROOT/$DIR/cli/stoker

builds() {
    meson_setup "$DIR" -Ddoctor=disabled -Dcuda=disabled -Dtests=true -Dpython=enabled
    meson compile -C "$DIR" -j "$(jobs)" stoker:executable
}

# The names of commands that program $1 knows, one a line.
names() {
    "$1" help --json |
        "$VENV/bin/python" -c 'import json, sys; print(*[c["name"] for c in json.load(sys.stdin)["commands"]], sep="\n")'
}
without() { comm -23 <(names "$WHOLE" | sort) <(names "$PROGRAM" | sort); }

lacks_the_doctor_alone() {
    diff <(without) <(printf '%s\n' check doctor explain report run top tune)
    diff <(names "$PROGRAM") <(names "$WHOLE" | grep -vxF "$(without)")
}

help_has_what_there_is() {
    local name
    "$PROGRAM" --help >"$DIR/help"
    for name in $(names "$PROGRAM"); do grep -q "^  $name  " "$DIR/help"; done
    for name in $(without); do no_line -E "^ +$name |\\(.*\\b$name\\b" "$DIR/help"; done
}

says_so() { # in one sentence, on standard error, with exit status 2
    local name way status=0
    for name in $(without); do
        for way in "$name" "$name --help" "help $name"; do
            status=0
            "$PROGRAM" $way >"$DIR/out" 2>"$DIR/err" || status=$?
            [ "$status" = 2 ]
            [ ! -s "$DIR/out" ]
            [ "$(wc -l <"$DIR/err")" = 1 ]
            grep -q "^stoker: $name: this build has no doctor.*-Ddoctor=disabled" "$DIR/err"
        done
    done
    "$PROGRAM" tun 2>"$DIR/err" || status=$? # nearest to `tune`, which is no advice here
    [ "$status" = 2 ]
    no_line 'Did you mean' "$DIR/err"
}

completes_what_there_is() {
    local shell name
    for shell in bash zsh fish; do
        "$PROGRAM" completion "$shell" >"$DIR/completion.$shell"
        for name in pack info completion; do grep -qw "$name" "$DIR/completion.$shell"; done
        for name in $(without); do
            no_line -E "^ +$name\)|'$name:|-a $name |_from $name'|_words \".* $name " "$DIR/completion.$shell"
        done
    done
    bash -n "$DIR/completion.bash"
}

# What meson would install, of the Python package, and the tests.
has_no_file_of_it() {
    meson introspect "$DIR" --installed --tests --targets --force-object-output >"$DIR/plan.json"
    "$VENV/bin/python" - "$DIR/plan.json" "$ROOT" <<'END'
import json
import sys

plan = json.load(open(sys.argv[1]))
files = [path.rpartition("python/")[2] for path in plan["installed"]]
assert "stoker/_open.py" in files and "stoker/_verdict.py" not in files, files
tests = {test["name"] for test in plan["tests"]}
assert "base/err" in tests and not [name for name in tests if "doctor" in name], tests
places = {target["name"]: target["defined_in"].removeprefix(sys.argv[2]) for target in plan["targets"]}
assert "stoker" in places and not [name for name, place in places.items() if "doctor" in name + place], places
END
}

tap_check "the program builds without the doctor" builds
tap_check "it lacks the commands of the doctor, and no other" lacks_the_doctor_alone
tap_check "--help lists what there is" help_has_what_there_is
tap_check "a command of the doctor is refused in one sentence, which says how to have it" says_so
tap_check "completion offers what there is" completes_what_there_is
tap_check "no test, target or Python file of the doctor is left" has_no_file_of_it
tap_done
