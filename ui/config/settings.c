/*
 * Reads the configuration; reads and writes the state. Files that are too large are rejected.
 */
#include "ui/config/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/base/alias.h"
#include "model/base/clock.h"
#include "model/base/log.h"
#include "model/base/loop.h"
#include "model/base/owned.h"

enum {
    FILE_MOST = 100000,
    COMPLAINTS_MOST = 20,
    KEPT_MOST = 64,
    NAME_MOST = 60,
    SETTINGS_MOST = 32,
    LOCK_MS = 1000,
    LOCK_AGAIN_MS = 10
};

struct kept_setting {
    char *name, *line;
    char *usual;  /* the value if the user has set nothing; NULL = not known */
    bool changed; /* by this process, and not yet saved */
};

struct settings {
    struct arena *mem;
    char *complaints[COMPLAINTS_MOST];
    int ncomplaints;
    struct kept_setting kept[KEPT_MOST];
    int nkept;
    bool changed, closed;
    const char *config, *config_path; /* the text of the configuration; NULL = there is none */
    const char *state;                /* the name of the state file */
    bool only_files;                  /* complaints about lines are left out */
    int lock;                         /* its folder, locked; -1 = not */
    int64_t lock_until;               /* when the wait for the lock ends; 0 = it has not begun */
};

struct settings *
settings_new(void)
{
    struct settings *s = xcalloc(1, sizeof *s);

    s->mem = arena_new();
    s->state = "state";
    s->lock = -1;
    return s;
}

static void
unlock_folder(struct settings *s)
{
    if (s->lock >= 0)
        close(s->lock);
    s->lock = -1;
    s->lock_until = 0;
}

void
settings_free(struct settings *s)
{
    if (!s)
        return;
    unlock_folder(s);
    for (int i = 0; i < s->ncomplaints; i++)
        free(s->complaints[i]);
    for (int i = 0; i < s->nkept; i++) {
        free(s->kept[i].name);
        free(s->kept[i].line);
        free(s->kept[i].usual);
    }
    arena_free(s->mem);
    free(s);
}

/* Takes ownership of text. The same complaint is made once, however often the file is read. */
static void
add_complaint(struct settings *s, char *text)
{
    bool is_known = false;

    for (int i = 0; i < s->ncomplaints; i++)
        is_known |= !strcmp(s->complaints[i], text);
    if (!is_known && s->ncomplaints < COMPLAINTS_MOST)
        s->complaints[s->ncomplaints++] = text;
    else
        free(text);
}

const char *
settings_complaint(const struct settings *s, int i)
{
    return i < s->ncomplaints ? s->complaints[i] : NULL;
}

/* --- files ----------------------------------------------------------------------------------- */

/* The path of a file of this program, NULL = no home folder; the caller frees. */
static char *
path_of(const char *variable, const char *below_home, const char *name)
{
    const char *base = getenv(variable), *home = getenv("HOME");

    if (base && *base == '/')
        return xasprintf("%s/queuetop%s%s", base, *name ? "/" : "", name);
    if (!home || *home != '/')
        return NULL;
    return xasprintf("%s/%s/queuetop%s%s", home, below_home, *name ? "/" : "", name);
}

void
settings_only_files(struct settings *s)
{
    s->only_files = true;
}

bool
settings_closed(const struct settings *s)
{
    return s->closed;
}

/* Says why a file could not be opened, unless it is not there. A folder that this user may not look
 * into is another user's (`runuser -u postgres` keeps HOME=/root): he has no file there. */
static void
complain_unopened(struct settings *s, const char *path, int why)
{
    struct stat st;

    if (why == ENOENT || why == ENOTDIR)
        return;
    if (why == EACCES && stat(path, &st) != 0)
        log_line(LOG_DEBUG, "%s: %s: there is no configuration", path, strerror(why));
    else
        add_complaint(s, xasprintf("%s: %s", path, strerror(why)));
}

/* The text of a file; NULL = there is no file, or a complaint was added. The caller frees. */
static char *
read_text(struct settings *s, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char *text = NULL;

    if (fd < 0) {
        complain_unopened(s, path, errno);
        return NULL;
    }
    struct err e;
    if (!owned_path(path, &e) || !owned_check(fd, path, &e)) {
        add_complaint(s, xstrdup(e.text));
        close(fd);
        return NULL;
    }
    text = xmalloc(FILE_MOST + 1);
    ssize_t n = read(fd, text, FILE_MOST + 1);
    close(fd);
    if (n < 0 || n > FILE_MOST || memchr(text, 0, (size_t)n)) {
        const char *why = n < 0 ? strerror(errno) : n > FILE_MOST ? "too long" : "no text";
        add_complaint(s, xasprintf("%s: %s; it is not used", path, why));
        free(text);
        return NULL;
    }
    text[n] = 0;
    return text;
}

/* --- the configuration ----------------------------------------------------------------------- */

struct settings_reader {
    struct settings *s;
    const char *file;
    int line;
    const struct setting *table;
    const char *const *names;
    void *into;
    bool applies;
    bool unsure; /* in a section with an unreadable name: it may be meant for us */
};

static char *
trim(char *s)
{
    s += strspn(s, " \t\r");
    for (size_t n = strlen(s); n > 0 && strchr(" \t\r", s[n - 1]); n--)
        s[n - 1] = 0;
    return s;
}

static void
refuse_line(const struct settings_reader *r, const char *key, const char *why)
{
    if (!r->s->only_files)
        add_complaint(r->s, xasprintf("%s:%d: %.60s: %.200s", r->file, r->line, key, why));
}

/* Cuts a comment: # at the start of the line or after a blank. */
static void
cut_comment(char *line)
{
    for (char *s = line; (s = strchr(s, '#')); s++)
        if (s == line || s[-1] == ' ' || s[-1] == '\t') {
            *s = 0;
            return;
        }
}

/* Switches a protection on if its line can't be read, because a typing error must not switch it
 * off. */
static void
close_switch(const struct settings_reader *r, const struct setting *o)
{
    bool *to = (bool *)(void *)((char *)r->into + o->offset);

    if (*to)
        return;
    *to = true;
    r->s->closed = true;
    add_complaint(r->s, r->line ? xasprintf("%s:%d: so %s is on", r->file, r->line, o->name)
                                : xasprintf("%s: so %s is on", r->file, o->name));
}

static void
close_all(const struct settings_reader *r)
{
    for (const struct setting *o = r->table; o->name; o++)
        if (o->kind == SET_SAFETY)
            close_switch(r, o);
}

/* The switch that a line probably means, although the line is not a valid "key = value". */
static void
close_meant(const struct settings_reader *r, const char *key)
{
    const char *names[SETTINGS_MOST + 1];
    int n = 0;

    for (const struct setting *o = r->table; o->name && n < SETTINGS_MOST; o++)
        if (o->kind == SET_SAFETY)
            names[n++] = o->name;
    names[n] = NULL;
    const char *meant = alias_closest(key, names);
    for (const struct setting *o = r->table; meant && o->name; o++)
        if (!strcmp(o->name, meant))
            close_switch(r, o);
}

static bool
set_flag(bool *to, const char *value)
{
    static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};

    for (int i = 0; i < 8; i++)
        if (!strcmp(value, words[i])) {
            *to = i % 2;
            return true;
        }
    return false;
}

static void
set_text(const struct settings_reader *r, const struct setting *o, const char *value)
{
    struct buf all = {0};

    buf_str(&all, "is not one of:");
    for (const char *const *c = o->choices; c && *c; c++) {
        if (!strcmp(*c, value))
            break;
        buf_printf(&all, " %s", *c);
        if (!c[1])
            refuse_line(r, o->name, all.data);
        if (!c[1])
            value = NULL;
        if (!value)
            break;
    }
    buf_free(&all);
    if (value)
        *(const char **)(void *)((char *)r->into + o->offset) =
            arena_strndup(r->s->mem, value, strlen(value));
}

static void
set_value(const struct settings_reader *r, const struct setting *o, const char *value)
{
    void *to = (char *)r->into + o->offset;
    struct err e;
    int64_t ms;

    switch (o->kind) {
    case SET_FLAG:
        if (!set_flag(to, value))
            refuse_line(r, o->name, "is yes or no");
        return;
    case SET_SAFETY:
        if (!set_flag(to, value)) {
            refuse_line(r, o->name, "is yes or no");
            close_switch(r, o);
        }
        return;
    case SET_TEXT:
        set_text(r, o, value);
        return;
    case SET_TIME:
        if (!duration_parse(value, &ms, &e))
            refuse_line(r, o->name, e.text);
        else if (ms < 100 || ms > 3600000)
            refuse_line(r, o->name, "is 100ms to 1h");
        else
            *(int64_t *)to = ms;
        return;
    }
}

static void
read_section(struct settings_reader *r, char *line)
{
    char *end = strchr(line, ']');

    r->applies = r->unsure = false;
    if (!end || *trim(end + 1)) {
        refuse_line(r, line, "a section is [name]");
        r->unsure = true;
        return;
    }
    *end = 0;
    for (const char *const *n = r->names; n && *n; n++)
        r->applies |= !strcmp(*n, trim(line + 1));
}

/* Compares names of keys: read-only is read_only, too. */
static bool
is_named(const char *name, const char *key)
{
    for (; *name; name++, key++)
        if (*name != *key && !(strchr("-_", *name) && *key && strchr("-_", *key)))
            return false;
    return !*key;
}

static void
read_line(struct settings_reader *r, char *line)
{
    cut_comment(line);
    char *at = trim(line), *equals;

    if (!*at || *at == ';')
        return;
    if (*at == '[') {
        read_section(r, at);
        return;
    }
    equals = strchr(at, '=');
    if (!equals) {
        refuse_line(r, at, "a line is key = value");
        at[strcspn(at, " \t:")] = 0;
        if (r->applies || r->unsure)
            close_meant(r, at);
        return;
    }
    *equals = 0;
    const char *key = trim(at), *value = trim(equals + 1);
    for (const struct setting *o = r->table; o->name; o++)
        if (is_named(o->name, key)) {
            if (r->applies)
                set_value(r, o, value);
            else if (r->unsure && o->kind == SET_SAFETY)
                close_switch(r, o);
            return;
        }
    refuse_line(r, key, "no such setting");
    if (r->applies || r->unsure)
        close_meant(r, key);
}

void
settings_parse(struct settings *s, const char *file, const char *text, const struct setting *table,
               const char *const *names, void *into)
{
    struct settings_reader r = {
        .s = s, .file = file, .table = table, .names = names, .into = into, .applies = true};
    char *copy = xstrdup(text), *rest = copy;

    for (char *line; (line = strsep(&rest, "\n"));) {
        r.line++;
        read_line(&r, line);
    }
    free(copy);
}

/* Replaces the home folder in a path by ~. */
static const char *
short_path(struct settings *s, const char *path)
{
    const char *home = getenv("HOME");
    size_t len = home ? strlen(home) : 0;

    if (len > 1 && !strncmp(path, home, len) && path[len] == '/')
        return arena_printf(s->mem, "~%s", path + len);
    return path;
}

void
settings_read_again(struct settings *s, const struct setting *table, const char *const *names,
                    void *into)
{
    if (s->config)
        settings_parse(s, s->config_path, s->config, table, names, into);
}

void
settings_read(struct settings *s, const struct setting *table, const char *const *names, void *into)
{
    char *path = path_of("XDG_CONFIG_HOME", ".config", "config");
    int before = s->ncomplaints;
    char *text = path ? read_text(s, path) : NULL;

    if (text) {
        s->config = arena_printf(s->mem, "%s", text);
        s->config_path = arena_printf(s->mem, "%s", short_path(s, path));
        settings_read_again(s, table, names, into);
    } else if (s->ncomplaints > before) {
        close_all(&(struct settings_reader){
            .s = s, .file = short_path(s, path), .table = table, .into = into});
    }
    free(text);
    free(path);
}

/* --- the state ------------------------------------------------------------------------------- */

static struct kept_setting *
find_kept(const struct settings *s, const char *name)
{
    for (int i = 0; i < s->nkept; i++)
        if (!strcmp(s->kept[i].name, name))
            return (struct kept_setting *)(uintptr_t)&s->kept[i];
    return NULL;
}

const char *
settings_get(const struct settings *s, const char *name)
{
    const struct kept_setting *k = find_kept(s, name);

    return k ? k->line : "";
}

static struct kept_setting *
make_kept(struct settings *s, const char *name)
{
    struct kept_setting *k = find_kept(s, name);

    if (k || s->nkept == KEPT_MOST || strlen(name) > NAME_MOST)
        return k;
    k = &s->kept[s->nkept++];
    *k = (struct kept_setting){.name = xstrdup(name), .line = xstrdup("")};
    return k;
}

void
settings_usual(struct settings *s, const char *name, const char *line)
{
    struct kept_setting *k = make_kept(s, name);

    if (!k)
        return;
    free(k->usual);
    k->usual = xstrdup(line);
}

/* Takes the line of a name. False: the name has this line already, or there is no room for it. */
static bool
take_line(struct kept_setting *k, const char *line)
{
    if (k && k->usual && !strcmp(k->usual, line))
        line = "";
    if (!k || !strcmp(k->line, line))
        return false;
    free(k->line);
    k->line = xstrdup(line);
    return true;
}

void
settings_put(struct settings *s, const char *name, const char *line)
{
    struct kept_setting *k = make_kept(s, name);

    if (take_line(k, line))
        s->changed = k->changed = true;
}

void
settings_apart(struct settings *s, const char *name)
{
    s->state = arena_printf(s->mem, "state.%s", name);
}

/* Cuts the next line, "queues: sort=ready desc", off the text. A line of another form is left out.
 */
static bool
next_kept(char **rest, const char **name, const char **value)
{
    for (char *line; *rest && (line = strsep(rest, "\n"));) {
        char *colon = strchr(line, ':');
        if (!colon || *line == '#')
            continue;
        *colon = 0;
        *name = trim(line);
        *value = trim(colon + 1);
        return true;
    }
    return false;
}

/* The text of the state file, as read_text. */
static char *
read_state(struct settings *s)
{
    char *path = path_of("XDG_STATE_HOME", ".local/state", s->state);
    char *text = path ? read_text(s, path) : NULL;

    free(path);
    return text;
}

void
settings_load(struct settings *s)
{
    char *text = read_state(s), *rest = text;
    const char *name, *value;

    while (next_kept(&rest, &name, &value))
        (void)take_line(make_kept(s, name), value);
    free(text);
}

/* --- saving ---------------------------------------------------------------------------------- */

/* Waits; nothing else goes on meanwhile. */
static void
wait_ms(int ms)
{
    struct loop *l = loop_new();

    (void)!loop_turn(l, ms, &(struct err){0});
    loop_free(l);
}

/* Locks the folder against other consoles, so that of two that save at once none drops what the
 * other one wrote. The file itself can't be locked, because each save replaces it. Without the lock
 * all goes on: another process may hold it, and some file systems have none. */
static void
lock_folder(struct settings *s, const char *folder)
{
    if (s->lock_until == 0)
        s->lock_until = clock_ms() + LOCK_MS;
    if (s->lock < 0)
        s->lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (s->lock >= 0 && flock(s->lock, LOCK_EX | LOCK_NB) != 0) {
        if ((errno != EWOULDBLOCK && errno != EINTR) || clock_ms() >= s->lock_until)
            return;
        wait_ms(LOCK_AGAIN_MS);
    }
}

/* Reads the line of this name anew, because another console may have written it, and keeps other
 * consoles from writing until settings_save. */
static void
settings_renew(struct settings *s, const char *name)
{
    char *folder = path_of("XDG_STATE_HOME", ".local/state", "");
    const char *found, *value, *line = "";

    if (folder)
        lock_folder(s, folder);
    char *text = read_state(s), *rest = text;
    while (next_kept(&rest, &found, &value))
        if (!strcmp(found, name))
            line = value;
    struct kept_setting *k = make_kept(s, name);
    if (k && !k->changed)
        (void)take_line(k, line);
    free(text);
    free(folder);
}

/* What the file gets: its present lines, with those that this process has changed. If the file is
 * there and can't be read, all lines that this process knows. */
static void
merge_lines(struct settings *s, const char *path, struct buf *out)
{
    char *text = read_text(s, path), *rest = text;
    bool is_lost = !text && access(path, F_OK) == 0;
    const char *name, *value;

    buf_str(out, "# written by queuetop: order and columns of its tables\n");
    while (next_kept(&rest, &name, &value)) {
        const struct kept_setting *k = find_kept(s, name);
        if (!k || !k->changed)
            buf_printf(out, "%s: %s\n", name, value);
    }
    for (int i = 0; i < s->nkept; i++) {
        const struct kept_setting *k = &s->kept[i];
        if (*k->line && (k->changed || is_lost))
            buf_printf(out, "%s: %s\n", k->name, k->line);
    }
    free(text);
}

/* Makes the folders of a path that do not exist. */
static bool
make_folder(char *path)
{
    for (char *at = path + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        bool ok = mkdir(path, 0700) == 0 || errno == EEXIST;
        *at = '/';
        if (!ok)
            return false;
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

/* Makes the folder if it is missing. In a folder of another user nothing is written: he could
 * replace it. */
static bool
take_folder(char *folder, struct err *e)
{
    if (!owned_path(folder, e))
        return false;
    int fd = make_folder(folder) ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd < 0)
        return fail(e, ERR_SYS, "%s: %s", folder, strerror(errno));
    bool ok = owned_check(fd, folder, e);
    close(fd);
    return ok;
}

static bool
replace_state(struct settings *s, char *folder, struct err *e)
{
    char *path = xasprintf("%s/%s", folder, s->state),
         *fresh = xasprintf("%s/%s.%d", folder, s->state, getpid());
    struct err why;
    struct buf b = {0};
    bool ok = take_folder(folder, &why);

    if (ok) {
        lock_folder(s, folder);
        merge_lines(s, path, &b);
        ok = (owned_write_new(fresh, 0600, b.data, b.len) && rename(fresh, path) == 0) ||
             fail(&why, ERR_SYS, "%s: %s", path, strerror(errno));
        if (!ok)
            unlink(fresh);
    }
    if (!ok)
        fail(e, why.kind, "%s; order and columns are not kept", why.text);
    free(fresh);
    free(path);
    buf_free(&b);
    return ok;
}

bool
settings_save(struct settings *s, struct err *e)
{
    char *folder = path_of("XDG_STATE_HOME", ".local/state", "");
    bool ok = !s->changed || !folder || replace_state(s, folder, e);

    for (int i = 0; ok && folder && i < s->nkept; i++)
        s->kept[i].changed = false;
    if (folder)
        s->changed = !ok;
    unlock_folder(s);
    free(folder);
    return ok;
}

/* --- answers about trust --- */

static const char answers[] = "trust"; /* the line of the state file */

void
trusted_recall(struct trust *t, struct settings *s)
{
    settings_load(s);
    trust_recall(t, settings_get(s, answers));
}

bool
trusted_keep(struct settings *s, const struct owners *shown, struct err *e)
{
    struct trust *t = trust_new();

    settings_renew(s, answers);
    trust_recall(t, settings_get(s, answers));
    trust_answer(t, shown);
    settings_put(s, answers, trust_line(t));
    trust_free(t);
    return settings_save(s, e);
}
