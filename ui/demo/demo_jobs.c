/*
 * The tables of the demo: which jobs are pushed, how long they take, how they fail. The rates add
 * up to about 30 jobs a second, a small load for two cores. Some texts are hostile on purpose (an
 * escape sequence, a right-to-left mark): a console must show them harmlessly.
 */
#include "ui/demo/demo_jobs.h"

#include <stdbool.h>
#include <string.h>

enum { BEHIND = 900, CAUGHT_UP = 600 };
static const double SLOWEST = 0.05;

enum { INCIDENT_EVERY_MS = 100000, INCIDENT_MS = 40000, TAIL_PERCENT = 3, TAIL_FACTOR = 6 };

/* queue, kind, jobs/s, backlog, urgent %, later %, tries, unique key, type, payload */
/* clang-format off */
const struct demo_kind demo_kinds[] = {
    {"image.resize", "upload", 3.5, 380, 5, 0, 0, NULL, NULL,
     "{\"bucket\": \"acme-media\", \"key\": \"2026/11/beach-~###.jpg\", \"sizes\": [320, 640, 1280],\n"
     " \"notify\": {\"url\": \"https://api.acme.example/hook/~##\"}}"},
    {"image.resize", "avatar", 0.5, 20, 50, 0, 0, "avatar:~##", NULL,
     "{\"bucket\": \"acme-media\", \"key\": \"avatars/\u202egpj.exe\", \"sizes\": [64]}"},
    {"search.index", "product", 4, 60, 0, 0, 3, NULL, NULL,
     "{\"doc\": ~####, \"index\": \"products-v7\"}"},
    {"thumb.video", "", 0.5, 30, 0, 0, 0, NULL, NULL,
     "{\"video\": \"v~####\", \"at_s\": [1, 5, 30], \"codec\": \"h264\"}"},
    {"mail.send", "receipt", 5, 20, 10, 0, 0, NULL, NULL,
     "{\"to\": \"user~###@mail.example\", \"template\": \"receipt\", \"order\": ~#####}"},
    {"mail.send", "newsletter", 0.5, 120, 0, 100, 0, NULL, NULL,
     "{\"to\": \"user~###@mail.example\", \"template\": \"newsletter\", \"edition\": \"2026-11\"}"},
    {"webhook.out", "order.paid", 3, 20, 0, 0, 0, NULL, NULL,
     "{\"url\": \"https://hooks.acme.example/in\", \"event\": \"order.paid\", \"order\": ~#####}"},
    {"billing.sync", "", 1, 5, 0, 0, 0, "customer:~#", NULL,
     "{\"customer\": ~#, \"since\": \"2026-11-01\"}"},
    {"sms.send", "", 2, 5, 20, 5, 0, NULL, "text/plain", "+49170~######\nYour code is ~#####"},
    {"report.daily", "revenue", 0.02, 3, 0, 0, 0, NULL, NULL,
     "{\"report\": \"revenue\", \"day\": \"2026-11-2~\", \"format\": \"pdf\"}"},
    {"invoice.pdf", "", 0.7, 5, 0, 0, 0, NULL, "application/x-protobuf",
     "\x0a\x06INV~##\x10\x96\x01\x1a\x0b" "acme GmbH \xc3\x28"},
    {"audit.ship", "", 4, 2, 0, 0, 0, NULL, NULL,
     "{\"stream\": \"audit\", \"from\": ~######, \"count\": ~##}"},
    {0},
};
/* clang-format on */

/* one way to fail: percent of the tries, or percent of the jobs, which then fail each time */
struct demo_fault {
    const char *queue;
    int percent;
    bool always;   /* such a job fails at every try */
    bool incident; /* only while the search cluster is down */
    const char *error;
};

/* clang-format off */
static const struct demo_fault faults[] = {
    {"search.index", 60, false, true,
     "connect() to es-3:9200: Connection refused\n  at index_doc  worker/search.c:142"},
    {"search.index", 1, true, false, "mapping conflict: field \"price\" is text, not float"},
    {"image.resize", 3, true, false, "invalid JPEG: bad marker \x1b[31m at 0x~c"},
    {"image.resize", 4, false, false, "timeout after 30s\n  at fetch  worker/http.c:88"},
    {"image.resize", 1, false, false, "ENOSPC: no space left on device"},
    {"webhook.out", 9, false, false, "HTTP 50~ from hooks.acme.example"},
    {"webhook.out", 1, true, false, "HTTP 410 from hooks.acme.example: gone"},
    {"thumb.video", 6, true, false, "ffmpeg: moov atom not found"},
    {"sms.send", 1, true, false, "number not allowed: +49170~######"},
    {"billing.sync", 10, false, false, "could not serialize access due to concurrent update"},
    {"invoice.pdf", 2, true, false, "template 'invoice-v~' is missing: \xff\xfe\u200b"},
};

/* queue, mean run time */
static const struct demo_time {
    const char *queue;
    int run_ms;
} times[] = {
    {"image.resize", 800}, {"search.index", 120}, {"thumb.video", 5000}, {"mail.send", 60},
    {"webhook.out", 250}, {"billing.sync", 500}, {"sms.send", 120}, {"report.daily", 20000},
    {"invoice.pdf", 1200}, {"audit.ship", 30},
};
/* clang-format on */

double
demo_pace(double pace, int64_t ready)
{
    double next = ready > BEHIND ? pace * 0.7 : ready < CAUGHT_UP ? pace * 1.2 : pace;

    return next < SLOWEST ? SLOWEST : next > 1 ? 1 : next;
}

/* xorshift64: random enough for a demo */
static uint64_t
next(uint64_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random;
}

int
demo_roll(uint64_t *random, int n)
{
    return (int)(next(random) % (uint64_t)n);
}

void
demo_fill(struct buf *out, const char *pattern, uint64_t *random)
{
    for (const char *at = pattern; *at;) {
        size_t plain = strcspn(at, "#~");
        buf_add(out, at, plain);
        at += plain;
        if (*at)
            buf_printf(out, "%d", *at == '#' ? demo_roll(random, 10) : 1 + demo_roll(random, 9));
        at += *at != 0;
    }
}

/* FNV-1a over the id */
static uint64_t
hash(const char *id)
{
    uint64_t h = 14695981039346656037U;

    for (; *id; id++)
        h = (h ^ (unsigned char)*id) * 1099511628211U;
    return h | 1;
}

static int
mean_ms(const char *queue)
{
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (strcmp(times[i].queue, queue) == 0)
            return times[i].run_ms;
    return 100;
}

void
demo_decide(struct demo_try *t)
{
    uint64_t of_job = hash(t->id);
    bool incident = t->wall_ms % INCIDENT_EVERY_MS < INCIDENT_MS;

    for (int i = 0; i < 8; i++) /* mixes the bits: ids made at one moment differ little */
        next(&of_job);
    t->random = of_job + (uint64_t)t->number * 0x9e3779b97f4a7c15U + 1;
    for (int i = 0; i < 8; i++)
        next(&t->random);
    t->run_ms = mean_ms(t->queue) * (50 + demo_roll(&t->random, 100)) / 100;
    if (demo_roll(&t->random, 100) < TAIL_PERCENT)
        t->run_ms *= TAIL_FACTOR;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        const struct demo_fault *f = &faults[i];
        int rolled = demo_roll(f->always ? &of_job : &t->random, 100);
        if (strcmp(f->queue, t->queue) != 0 || (f->incident && !incident) || rolled >= f->percent)
            continue;
        t->error = f->error;
        return;
    }
}
