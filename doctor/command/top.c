/* top.c - `stoker top`: a run while it is running, redrawn twice per second
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/err.h"
#include "cli/cli.h"
#include "doctor/top/top.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { LEAST_WIDTH = 40, LEAST_HEIGHT = 10, MOST_SIDE = 1000, PERIOD_MS = 500 };

struct top {
    const char *what; /* number or directory of a run, or a pid; NULL: the newest run */
    char directory[4096];
    enum dr_pane pane;
    bool once, json;
    struct dr_screen screen;
    struct dr_live *live;
};

static volatile sig_atomic_t ended;
static void end(int signal)
{
    (void)signal;
    ended = 1;
}

/* ---- the terminal -------------------------------------------------------------------------------- */

static struct termios before;

static bool terminal_begin(void)
{
    struct termios raw;
    if (tcgetattr(STDIN_FILENO, &before))
        return false;
    raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    if (tcsetattr(STDIN_FILENO, TCSANOW, &raw))
        return false;
    fputs("\033[?1049h\033[?25l", stdout); /* alternate screen, no cursor */
    fflush(stdout);
    return true;
}

static void terminal_end(void)
{
    fputs("\033[?25h\033[?1049l", stdout);
    fflush(stdout);
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

static uint32_t within(uint32_t value, uint32_t least)
{
    return value < least ? least : value > MOST_SIDE ? MOST_SIDE : value;
}

static void size_of(uint32_t *width, uint32_t *height)
{
    struct winsize size;
    *width = 80;
    *height = 24;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row) {
        *width = size.ws_col;
        *height = size.ws_row;
    }
    *width = within(*width, LEAST_WIDTH);
    *height = within(*height, LEAST_HEIGHT);
}

/* ---- frames -------------------------------------------------------------------------------------- */

/* Draws the current state of a run; false: it cannot be read. */
static bool draw_run(struct top *top, struct stoker_error *err)
{
    struct dr_run *run;
    struct dr_facts facts;
    if (dr_run_open(&run, top->directory, err))
        return false;
    struct dr_verdict *verdict = calloc(1, sizeof *verdict);
    const bool known = verdict && dr_facts_of(&facts, run, -1, err) == 0;
    const bool judged = known && facts.step_count;
    if (judged)
        dr_judge(verdict, &facts);
    dr_top_frame(&top->screen, run, judged ? &facts : NULL, judged ? verdict : NULL, top->pane,
                 known ? "not enough training steps yet" : err->message);
    if (known)
        dr_facts_free(&facts);
    free(verdict);
    dr_run_close(run);
    return true;
}

static bool draw(struct top *top, struct stoker_error *err)
{
    uint32_t width, height;
    size_of(&width, &height);
    if (!dr_screen_begin(&top->screen, width, height))
        return false;
    const bool drawn = top->live ? dr_live_frame(&top->screen, top->live, err) : draw_run(top, err);
    if (!drawn)
        return false;
    dr_screen_end(&top->screen);
    for (size_t at = 0; at < top->screen.size;) {
        const ssize_t written = write(STDOUT_FILENO, top->screen.text + at, top->screen.size - at);
        if (written < 0 && errno != EINTR)
            return false;
        at += written > 0 ? (size_t)written : 0;
    }
    return true;
}

/* False: the user wants to quit. */
static bool wait_for_key(struct top *top)
{
    struct pollfd input = {STDIN_FILENO, POLLIN, 0};
    if (poll(&input, 1, PERIOD_MS) <= 0 || !(input.revents & POLLIN))
        return !(input.revents & (POLLHUP | POLLERR));
    char key;
    if (read(STDIN_FILENO, &key, 1) != 1)
        return errno == EINTR;
    if (key >= '1' && key < '1' + DR_PANES)
        top->pane = (enum dr_pane)(key - '1');
    return key != 'q' && key != 'Q' && key != 3 && key != 4 && key != 27;
}

static int watch(struct top *top)
{
    struct stoker_error err = {0};
    const struct sigaction action = {.sa_handler = end};
    bool good = true;
    if (!terminal_begin())
        return fail(EXIT_FAILED,
                    "top: cannot control this terminal; 'stoker top --once' prints one frame as text");
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    while (!ended && (good = draw(top, &err)) && wait_for_key(top))
        ;
    terminal_end();
    return good ? EXIT_OK : fail(EXIT_FAILED, "%s", err.message);
}

/* ---- one frame as JSON --------------------------------------------------------------------------- */

/* The same members as run.json: of a run in progress, what is known so far. */
static int print_run(const char *directory, struct stoker_error *err)
{
    struct dr_judged *judged = calloc(1, sizeof *judged);
    if (!judged)
        return st_fail(err, STOKER_ENOMEM, "out of memory for a run");
    int rc = dr_run_open(&judged->run, directory, err);
    if (!rc) {
        dr_facts_of(&judged->facts, judged->run, -1, NULL); /* no steps yet: the verdict says so */
        dr_judge(&judged->verdict, &judged->facts);
        rc = dr_write_json(stdout, &judged->verdict, &judged->facts)
                 ? st_fail(err, STOKER_EIO, "cannot write to standard output")
                 : STOKER_OK;
    }
    dr_judged_close(judged);
    return rc;
}

static int print_json(struct top *top)
{
    struct stoker_error err = {0};
    struct json json = {.to = stdout};
    const int rc = top->live ? dr_live_json(&json, top->live, &err) : print_run(top->directory, &err);
    return rc ? fail(EXIT_FAILED, "%s", err.message) : EXIT_OK;
}

/* ---- the command --------------------------------------------------------------------------------- */

static int find(struct top *top)
{
    struct stoker_error err;
    uint64_t pid;
    if (dr_find_run(top->directory, top->what, &err) == 0)
        return EXIT_OK;
    if (!top->what || !parse_count(top->what, 1, INT32_MAX, &pid))
        return fail(EXIT_FAILED, "%s", err.message);
    if (dr_run_of_process(top->directory, sizeof top->directory, (int)pid))
        return EXIT_OK;
    if (dr_live_open(&top->live, (int)pid, &err))
        return fail(EXIT_FAILED, "%s", err.message);
    return EXIT_OK;
}

static int parse(struct top *top, int argc, char **argv)
{
    struct arguments args = ARGUMENTS(&cmd_top, argc, argv);
    while (next_argument(&args)) {
        if (option_is(&args, "--once"))
            top->once = true;
        else if (option_is(&args, "--json"))
            top->json = true;
        else if (top->what)
            refuse_argument(&args);
        else
            top->what = args.word;
    }
    return args.failed ? EXIT_USAGE : EXIT_OK;
}

static int show(struct top *top)
{
    const bool terminal = isatty(STDOUT_FILENO) && isatty(STDIN_FILENO);
    const struct dr_style style = dr_style_for(stdout);
    struct stoker_error err = {0};
    top->screen.ascii = style.ascii;
    top->screen.plain = top->once || !terminal;
    top->screen.color = !top->screen.plain && style.color;
    if (!top->screen.plain)
        return watch(top);
    return draw(top, &err) ? EXIT_OK : fail(EXIT_FAILED, "%s", err.message);
}

static int run(int argc, char **argv)
{
    struct top top = {0};
    int code = parse(&top, argc, argv);
    if (!code)
        code = find(&top);
    if (!code)
        code = top.json ? print_json(&top) : show(&top);
    free(top.screen.text);
    dr_live_close(top.live);
    return code;
}

static const struct cli_option options[] = {
    {"--once", NULL, "print one frame as text; the default when standard output is not a terminal"},
    {"--json", NULL,
     "print one frame as JSON: of a run the same as run.json, of a process its loaders' counters"},
    {NULL},
};

const struct command cmd_top = {
    .name = "top",
    .summary = "watch a run live: verdict, steps, pipeline, workers, resources",
    .synopsis = "[RUN | PID] [--once | --json]",
    .about = "RUN is the number or the directory of a run that 'stoker run' records; the default is\n"
             "the newest run in .stoker. PID is a process of such a run, or any process that loads\n"
             "data with Stoker's engine.",
    .options = options,
    .notes = "Keys: 1 all, 2 steps, 3 pipeline, 4 workers, 5 resources, q quit.",
    .arguments = COMPLETES_FOLDERS,
    .run = run,
};
