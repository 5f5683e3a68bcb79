/* Heap that never returns NULL, the arena and the growing buffer. The abort hook is the only global
 * state: it must be found when nothing can be allocated. */
#include "model/base/mem.h"

#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK_SIZE = 16 * 1024, ALIGNMENT = 16 };

static void (*abort_hook)(void);

void
mem_on_abort(void (*hook)(void))
{
    abort_hook = hook;
}

static _Noreturn void
out_of_memory(void)
{
    static const char text[] = "queuetop: out of memory\n";
    void (*hook)(void) = abort_hook;

    abort_hook = NULL; /* a hook that runs out of memory itself must not call itself again */
    if (hook)
        hook();
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
        abort();
    abort();
}

static void *
checked(void *p)
{
    if (!p)
        out_of_memory();
    return p;
}

void *
xmalloc(size_t size)
{
    return checked(malloc(size ? size : 1));
}

void *
xcalloc(size_t n, size_t size)
{
    return checked(n && size ? calloc(n, size) : calloc(1, 1));
}

void *
xreallocarray(void *p, size_t n, size_t size)
{
    return checked(n && size ? reallocarray(p, n, size) : realloc(p, 1));
}

char *
xstrdup(const char *s)
{
    return checked(strdup(s));
}

char *
xstrndup(const char *s, size_t n)
{
    return checked(strndup(s, n));
}

char *
xasprintf(const char *fmt, ...)
{
    char *s = NULL;
    va_list ap;

    va_start(ap, fmt);
    if (vasprintf(&s, fmt, ap) < 0)
        s = NULL;
    va_end(ap);
    return checked(s);
}

/* --- arena: blocks, the newest first; what is too big gets a block of its own --- */

struct arena_block {
    struct arena_block *next;
    size_t used, size;
    _Alignas(ALIGNMENT) char bytes[];
};

struct arena {
    struct arena_block *blocks;
};

struct arena *
arena_new(void)
{
    return xcalloc(1, sizeof(struct arena));
}

static void
free_blocks(struct arena_block *b)
{
    while (b) {
        struct arena_block *next = b->next;
        free(b);
        b = next;
    }
}

void
arena_free(struct arena *a)
{
    if (!a)
        return;
    free_blocks(a->blocks);
    free(a);
}

void
arena_reset(struct arena *a)
{
    if (!a->blocks)
        return;
    free_blocks(a->blocks->next);
    a->blocks->next = NULL;
    a->blocks->used = 0;
}

size_t
arena_size(const struct arena *a)
{
    size_t size = 0;

    for (const struct arena_block *b = a ? a->blocks : NULL; b; b = b->next)
        size += sizeof *b + b->size;
    return size;
}

void *
arena_alloc(struct arena *a, size_t size)
{
    if (size > SIZE_MAX / 2)
        out_of_memory();
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct arena_block *b = a->blocks;
    if (!b || b->size - b->used < size) {
        size_t room = size > BLOCK_SIZE ? size : BLOCK_SIZE;
        b = xmalloc(sizeof *b + room);
        *b = (struct arena_block){.next = a->blocks, .size = room};
        a->blocks = b;
    }
    void *p = b->bytes + b->used;
    b->used += size;
    return memset(p, 0, size);
}

char *
arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap, again;

    va_start(ap, fmt);
    va_copy(again, ap);
    int len = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    assert(len >= 0);
    char *s = arena_alloc(a, (size_t)len + 1);
    vsnprintf(s, (size_t)len + 1, fmt, again);
    va_end(again);
    return s;
}

char *
arena_strndup(struct arena *a, const char *s, size_t n)
{
    size_t len = strnlen(s, n);
    char *copy = arena_alloc(a, len + 1);

    return memcpy(copy, s, len);
}

/* --- growing byte string --- */

static void
make_room(struct buf *b, size_t len)
{
    if (len >= SIZE_MAX / 4 - b->len)
        out_of_memory();
    size_t need = b->len + len + 1;
    if (need <= b->cap)
        return;
    size_t cap = b->cap ? b->cap : 64;
    while (cap < need)
        cap *= 2;
    b->data = xreallocarray(b->data, cap, 1);
    b->cap = cap;
}

void
buf_add(struct buf *b, const void *bytes, size_t len)
{
    make_room(b, len);
    if (len > 0)
        memcpy(b->data + b->len, bytes, len);
    b->len += len;
    b->data[b->len] = 0;
}

void
buf_str(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

void
buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap, again;

    va_start(ap, fmt);
    va_copy(again, ap);
    int len = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    assert(len >= 0);
    make_room(b, (size_t)len);
    vsnprintf(b->data + b->len, (size_t)len + 1, fmt, again);
    va_end(again);
    b->len += (size_t)len;
}

void
buf_clear(struct buf *b)
{
    b->len = 0;
    if (b->data)
        b->data[0] = 0;
}

void
buf_free(struct buf *b)
{
    free(b->data);
    *b = (struct buf){0};
}
