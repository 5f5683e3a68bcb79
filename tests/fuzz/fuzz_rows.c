/*
 * Values of a column may be anything: they are decoded or refused, and a refusal names the column.
 */
#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#include "model/base/mem.h"
#include "model/db/rows.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

struct row {
    const char *text;
    int64_t big;
    int small, flag;
    double number;
};

/* The first byte chooses the type, the rest is the value. */
int
LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    static const struct field fields[] = {
        {"v", F_STR,  offsetof(struct row, text),   false},
        {"v", F_I64,  offsetof(struct row, big),    false},
        {"v", F_INT,  offsetof(struct row, small),  false},
        {"v", F_DBL,  offsetof(struct row, number), false},
        {"v", F_BOOL, offsetof(struct row, flag),   false},
    };
    char name[] = "v";
    PGresAttDesc column = {.name = name};
    struct rowset set;
    struct err e = {0};

    if (size == 0)
        return 0;
    PGresult *res = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    char *value = xstrndup((const char *)data + 1, size - 1);
    int ok = PQsetResultAttrs(res, 1, &column) && PQsetvalue(res, 0, 0, value, (int)strlen(value));
    assert(ok);
    struct result *r = result_wrap(res);
    size_t len;
    unsigned char *bytes = result_bytes(r, 0, 0, &len);
    assert(len <= strlen(value) && bytes[len] == 0);
    free(bytes);
    if (rowset_decode(r, &fields[data[0] % 5], 1, sizeof(struct row), &set, &e))
        rowset_free(&set);
    else
        assert(e.kind == ERR_DATA && strstr(e.text, "\"v\""));
    free(value);
    return 0;
}
