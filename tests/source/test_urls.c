/* URLs taken apart and put together; where S3's objects are, and what libcurl is given to ask for them.
 */
#include "source/remote/s3.h"
#include "source/remote/url.h"
#include "tap.h"
#include "tree.h"

static bool same(const char *is, const char *want)
{
    const bool equal = is && want ? !strcmp(is, want) : is == want;
    if (!equal)
        note("is %s, want %s", is ? is : "(none)", want ? want : "(none)");
    return equal;
}

/* ---- URLs ------------------------------------------------------------------------------------------
 */

static void test_public(void)
{
    static const char *const cases[][2] = {
        {"http://h/a?b#c", "http://h/a"},   {"https://u:p@h:1/a", "https://h:1/a"},
        {"http://u@h", "http://h"},         {"http://h/a@b", "http://h/a@b"},
        {"http://h?x=u@v", "http://h"},     {"s3://bucket/a?b#c", "s3://bucket/a?b#c"},
        {"http://u:p@v@h/x", "http://h/x"}, {"http://", "http://"},
    };
    char out[PATH_MAX];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ok(same(st_url_public(cases[i][0], out), cases[i][1]), "what of %s may be shown", cases[i][0]);
}

static void test_folder(void)
{
    static const char *const cases[][2] = {
        {"http://h/a/b.csv", "http://h/a/"},
        {"http://h/b.csv?x=/y", "http://h/"},
        {"http://h", "http://h/"},
        {"http://u:p@h/a/b#/c", "http://u:p@h/a/"},
        {"s3://bucket/a?/b.csv", "s3://bucket/a?/"},
        {"http://h?a/b", "http://h/"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *out = st_url_folder(cases[i][0]);
        ok(same(out, cases[i][1]), "the folder of %s", cases[i][0]);
        free(out);
    }
}

static void test_join(void)
{
    static const char *const cases[][3] = {
        {"http://h/a/", "b.jpg", "http://h/a/b.jpg"},
        {"http://h/a/", "/b.jpg", "http://h/b.jpg"},
        {"http://h/a/", "../b.jpg", "http://h/b.jpg"},
        {"http://h/a/", "../../../b.jpg", "http://h/b.jpg"},
        {"http://h/a/", "./b/../c/./d.jpg", "http://h/a/c/d.jpg"},
        {"http://h/a/", "b/..", "http://h/a/"},
        {"http://h/a/", "//x/b", "http://h//x/b"},
        {"http://h/a%20b/", "c d#e?f%g&h=\xc3\xbc.jpg",
         "http://h/a%20b/c%20d%23e%3Ff%25g%26h%3D%C3%BC.jpg"},
        {"http://h/a/", "...", "http://h/a/..."},
        {"http://h/a/", "file:///etc/passwd", "http://h/a/file%3A///etc/passwd"},
        {"s3://bucket/a/", "b c?.jpg", "s3://bucket/a/b c?.jpg"},
        {"s3://bucket/a/", "../../../b", "s3://bucket/b"},
        {"s3://bucket/a/", "/b", "s3://bucket/b"},
    };
    char out[200];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ok(st_url_join(out, sizeof out, cases[i][0], cases[i][1]) && same(out, cases[i][2]), "%s and %s",
           cases[i][0], cases[i][1]);
    for (size_t room = 1; room < 40; room++) {
        char *exact = malloc(room); /* a sanitizer sees what is written behind */
        const bool fits = st_url_join(exact, room, "http://h/a/", "b c/../d");
        ok(fits ? room > 12 && same(exact, "http://h/a/d") : room < 30, "%zu bytes are %s", room,
           fits ? "enough" : "too few");
        free(exact);
    }
}

/* ---- S3 --------------------------------------------------------------------------------------------
 */

struct aimed {
    const char *region, *endpoint, *key, *token, *uri; /* what there is */
    const char *url, *sign, *login, *token_header;     /* what libcurl gets */
};

static const struct aimed aims[] = {
    {"us-east-1", "", "", "", "s3://bucket/a/b.tar",
     "https://bucket.s3.us-east-1.amazonaws.com/a/b.tar"},
    {"eu-west-1", "", "K", "", "s3://bucket/a", "https://bucket.s3.eu-west-1.amazonaws.com/a",
     "aws:amz:eu-west-1:s3", "K:secret"},
    {"eu-west-1", "", "K", "T+/=", "s3://bucket/a", "https://bucket.s3.eu-west-1.amazonaws.com/a",
     "aws:amz:eu-west-1:s3", "K:secret", "X-Amz-Security-Token: T+/="},
    {"cn-north-1", "", "", "", "s3://bucket/a", "https://bucket.s3.cn-north-1.amazonaws.com.cn/a"},
    {"us-east-1", "", "", "", "s3://my.bucket/a", "https://s3.us-east-1.amazonaws.com/my.bucket/a"},
    {"us-east-1", "", "", "", "s3://My_Bucket/a", "https://s3.us-east-1.amazonaws.com/My_Bucket/a"},
    {"us-east-1", "http://127.0.0.1:9000", "K", "", "s3://bucket/a", "http://127.0.0.1:9000/bucket/a",
     "aws:amz:us-east-1:s3", "K:secret"},
    {"us-east-1", "http://host/below/", "", "", "s3://bucket/a", "http://host/below/bucket/a"},
    {"us-east-1", "", "", "", "s3://bucket/a b+c%\xc3\xbc?d#e=f&g~h",
     "https://bucket.s3.us-east-1.amazonaws.com/a%20b%2Bc%25%C3%BC%3Fd%23e%3Df%26g~h"},
};

static void set_all(const struct aimed *a)
{
    setenv("AWS_REGION", a->region, 1);
    setenv("AWS_ENDPOINT_URL_S3", a->endpoint, 1);
    setenv("AWS_ACCESS_KEY_ID", a->key, 1);
    setenv("AWS_SECRET_ACCESS_KEY", a->key[0] ? "secret" : "", 1);
    setenv("AWS_SESSION_TOKEN", a->token, 1);
}

static void test_aims(void)
{
    struct stoker_error err = {0};
    for (size_t i = 0; i < sizeof aims / sizeof *aims; i++) {
        struct st_s3 s3;
        struct st_http_target target = {0};
        const struct aimed *a = &aims[i];
        set_all(a);
        ok(!st_s3_load(&s3, &err) && !st_s3_aim(&s3, a->uri, &target, &err) && target.s3 &&
               same(target.url, a->url) && same(target.sign, a->sign) && same(target.login, a->login) &&
               same(target.token, a->token_header) && same(target.region, a->region),
           "%s in %s at %s %s", a->uri, a->region, a->endpoint, err.message);
        free(target.url);
    }
    static const char *const none[] = {
        "s3://",     "s3://bucket",    "s3://bucket/",           "s3:///a",
        "s3://ab/c", "s3://bu cket/a", "s3://user:hush@bucket/a"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        struct st_s3 s3;
        struct st_http_target target = {0};
        st_s3_load(&s3, &err);
        ok(st_s3_aim(&s3, none[i], &target, &err) == STOKER_EINVAL &&
               strstr(err.message, "BUCKET/KEY") && !strstr(err.message, "hush"),
           "%s is no object: %s", none[i], err.message);
        free(target.url);
    }
}

/* ---- settings --------------------------------------------------------------------------------------
 */

struct settings {
    const char *what, *credentials, *config; /* the files; NULL: none */
    const char *environment[8];              /* names and values */
    const char *login, *token, *region, *endpoint, *error;
};

#define KEYS(id) "aws_access_key_id = " id "\naws_secret_access_key=S" id "\n"

static const struct settings settings[] = {
    {.what = "nothing", .login = ":", .token = "", .region = "us-east-1", .endpoint = ""},
    {.what = "the environment",
     .environment = {"AWS_ACCESS_KEY_ID", "E", "AWS_SECRET_ACCESS_KEY", "SE", "AWS_DEFAULT_REGION", "r"},
     .login = "E:SE",
     .token = "",
     .region = "r",
     .endpoint = ""},
    {.what = "AWS_REGION before AWS_DEFAULT_REGION, AWS_ENDPOINT_URL_S3 before AWS_ENDPOINT_URL",
     .environment = {"AWS_REGION", "a", "AWS_DEFAULT_REGION", "b", "AWS_ENDPOINT_URL_S3", "http://a",
                     "AWS_ENDPOINT_URL", "http://b"},
     .login = ":",
     .token = "",
     .region = "a",
     .endpoint = "http://a"},
    {.what = "the default profile",
     .credentials = "[other]\n" KEYS("O") "[default]\n" KEYS("D"),
     .config = "[default]\nregion = eu\nendpoint_url = http://e\n",
     .login = "D:SD",
     .token = "",
     .region = "eu",
     .endpoint = "http://e"},
    {.what = "another profile, with a token",
     .credentials = "[default]\n" KEYS("D") "[ other ]\r\n" KEYS("O") "aws_session_token = T\r\n",
     .config = "[default]\nregion = eu\n[profile other]\nregion=us\n[profile third]\nregion=x\n",
     .environment = {"AWS_PROFILE", "other"},
     .login = "O:SO",
     .token = "T",
     .region = "us",
     .endpoint = ""},
    {.what = "keys in the config file",
     .config = "[profile other]\n" KEYS("C"),
     .environment = {"AWS_PROFILE", "other"},
     .login = "C:SC",
     .token = "",
     .region = "us-east-1",
     .endpoint = ""},
    {.what = "one file's keys and the other's token do not mix",
     .credentials = "[default]\n" KEYS("D"),
     .config = "[default]\n" KEYS("C") "aws_session_token = T\n",
     .login = "D:SD",
     .token = "",
     .region = "us-east-1",
     .endpoint = ""},
    {.what = "nor do the environment's keys and a file's token",
     .credentials = "[default]\n" KEYS("D") "aws_session_token = T\nregion = x\n",
     .environment = {"AWS_ACCESS_KEY_ID", "E", "AWS_SECRET_ACCESS_KEY", "SE"},
     .login = "E:SE",
     .token = "",
     .region = "x",
     .endpoint = ""},
    {.what = "a key without its secret does not count",
     .credentials = "[default]\n" KEYS("D"),
     .environment = {"AWS_ACCESS_KEY_ID", "E"},
     .login = "D:SD",
     .token = "",
     .region = "us-east-1",
     .endpoint = ""},
    {.what = "comments, and settings of settings",
     .credentials =
         "# [default]\n[default]\n#aws_access_key_id = X\n;region = y\ns3 =\n  region = z\n" KEYS("D"),
     .login = "D:SD",
     .token = "",
     .region = "us-east-1",
     .endpoint = ""},
    {.what = "no such profile",
     .credentials = "[default]\n" KEYS("D"),
     .environment = {"AWS_PROFILE", "nobody"},
     .error = "AWS_PROFILE=nobody"},
    {.what = "half a profile",
     .credentials = "[default]\naws_access_key_id = D\n",
     .error = "no aws_secret_access_key"},
};

static void put_file(const char *name, const char *text)
{
    FILE *file = text ? fopen(at("%s", name), "w") : NULL;
    if (!text)
        unlink(at("%s", name));
    if (file) {
        fputs(text, file);
        fclose(file);
    }
}

static void clear_environment(void)
{
    static const char *const names[] = {
        "AWS_PROFILE",           "AWS_REGION",        "AWS_DEFAULT_REGION",
        "AWS_ENDPOINT_URL_S3",   "AWS_ENDPOINT_URL",  "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_CONFIG_FILE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    setenv("HOME", tree_root, 1);
}

static void test_settings(void)
{
    mkdir(at(".aws"), 0755);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const struct settings *s = &settings[i];
        struct st_s3 s3;
        struct stoker_error err = {0};
        clear_environment();
        put_file(".aws/credentials", s->credentials);
        put_file(".aws/config", s->config);
        for (size_t k = 0; k + 1 < 8 && s->environment[k]; k += 2)
            setenv(s->environment[k], s->environment[k + 1], 1);
        const int rc = st_s3_load(&s3, &err);
        if (s->error)
            ok(rc == STOKER_EINVAL && strstr(err.message, s->error), "%s: %s", s->what, err.message);
        else
            ok(!rc && same(s3.login, s->login) && same(s3.token, s->token) &&
                   same(s3.region, s->region) && same(s3.endpoint, s->endpoint),
               "%s %s", s->what, err.message);
    }
}

static void test_odd_files(void)
{
    struct st_s3 s3;
    struct stoker_error err;
    FILE *file = fopen(at("long"), "w");
    fprintf(file, "[default]\n# %08191d\naws_access_key_id = %0300d\n", 1, 2);
    fprintf(file, "aws_access_key_id = K\naws_secret_access_key = S");
    fclose(file);
    clear_environment();
    put_file(".aws/credentials", NULL);
    put_file(".aws/config", NULL);
    setenv("AWS_SHARED_CREDENTIALS_FILE", at("long"), 1);
    ok(!st_s3_load(&s3, &err) && same(s3.login, "K:S"),
       "lines and values that are too long are passed over, and AWS_SHARED_CREDENTIALS_FILE names the "
       "file");
    file = fopen(at("long"), "w");
    fprintf(file, "[default]\n#%*s\n", 20000, "");
    fprintf(file, "#%08190daws_access_key_id = X\n" KEYS("D"), 1);
    fclose(file);
    ok(!st_s3_load(&s3, &err) && same(s3.login, "D:SD"),
       "the rest of a long comment is still a comment");
}

int main(void)
{
    tree_make();
    clear_environment();
    test_public();
    test_folder();
    test_join();
    test_aims();
    test_settings();
    test_odd_files();
    tree_remove();
    return done_testing();
}
