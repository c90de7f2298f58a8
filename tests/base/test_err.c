/* Errors carry a status and a sentence, whatever the length of what goes into it. */
#include "base/err.h"
#include "tap.h"

#include <errno.h>
#include <string.h>

int main(void)
{
    struct stoker_error err;
    ok(st_fail(&err, STOKER_EIO, "%s at %d", "x.jpg", 7) == STOKER_EIO, "st_fail returns its status");
    ok(err.code == STOKER_EIO && !strcmp(err.message, "x.jpg at 7"), "and writes the sentence");
    ok(st_fail(NULL, STOKER_EINVAL, "nobody listens") == STOKER_EINVAL, "no error object is needed");

    st_fail_in(&err, STOKER_ECORRUPT, "a/b.jpg");
    ok(err.code == STOKER_ECORRUPT && !strcmp(err.message, "a/b.jpg: x.jpg at 7"), "a prefix is put in front");

    static const char *const cases[][3] = {
        {"u.npy: row 1: not an image", "u.npy: row 1", "u.npy: row 1: not an image"},
        {"u.npy: has shrunk", "u.npy: row 1", "u.npy: row 1: has shrunk"},
        {"a.tar: b.jpg: truncated", "a.tar: b.jpg", "a.tar: b.jpg: truncated"},
        {"a.jpg.bak: gone", "a.jpg", "a.jpg: a.jpg.bak: gone"},
        {"u.npy", "u.npy", "u.npy: u.npy"},
        {"row 1: bad", "u.npy: row 1", "u.npy: row 1: row 1: bad"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        st_fail(&err, STOKER_EIO, "%s", cases[k][0]);
        st_fail_in(&err, STOKER_EIO, cases[k][1]);
        ok(!strcmp(err.message, cases[k][2]), "nothing is named twice: %s", err.message);
    }

    char path[5000];
    memset(path, 'p', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    st_fail(&err, STOKER_EIO, "short read");
    st_fail_in(&err, STOKER_EIO, path);
    ok(strstr(err.message, ": short read") != NULL, "a very long path leaves room for the reason");

    ok(st_fail_errno(&err, ENOENT, "%s", path) == STOKER_ENOTFOUND, "a missing file is ENOTFOUND");
    ok(st_fail_errno(NULL, EMFILE, "x") == STOKER_ETRANSIENT && st_fail_errno(NULL, EIO, "x") == STOKER_ETRANSIENT,
       "what may pass is ETRANSIENT");
    ok(st_fail_errno(NULL, EACCES, "x") == STOKER_EIO, "other errors of the system are EIO");
    ok(strstr(err.message, ": No such file") != NULL, "and end in the system's words");
    ok(st_fail_errno(&err, ENOMEM, "x") == STOKER_ENOMEM, "except the lack of memory");
    return done_testing();
}
